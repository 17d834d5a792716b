//! Whether another process is alive.

/// Whether a process of this pid may be alive. Only a clear "no such process" counts as dead: no permission and
/// anything unknown mean alive, and a pid beyond the platform's range cannot exist.
#[cfg(unix)]
pub fn may_be_alive(pid: u64) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    !matches!(test_kill_process(pid), Err(Errno::SRCH))
}

/// Whether a process of this pid may be alive. Only a clear "no such process" counts as dead: no permission and
/// anything unknown mean alive, and a pid beyond the platform's range cannot exist.
#[cfg(windows)]
pub fn may_be_alive(pid: u64) -> bool {
    use windows_sys::Win32::Foundation::{CloseHandle, ERROR_INVALID_PARAMETER, GetLastError, WAIT_OBJECT_0};
    use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_SYNCHRONIZE, WaitForSingleObject};

    let Ok(pid) = u32::try_from(pid) else {
        return false;
    };
    // SAFETY: plain calls with values; the handle is closed exactly once.
    unsafe {
        let handle = OpenProcess(PROCESS_SYNCHRONIZE, 0, pid);
        if handle.is_null() {
            return GetLastError() != ERROR_INVALID_PARAMETER;
        }
        let ended = WaitForSingleObject(handle, 0) == WAIT_OBJECT_0;
        CloseHandle(handle);
        !ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_process_is_dead() {
        assert!(may_be_alive(u64::from(std::process::id())));
        assert!(may_be_alive(1));
        assert!(!may_be_alive(i32::MAX as u64));
        assert!(!may_be_alive(u64::MAX));
    }
}
