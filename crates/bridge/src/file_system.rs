//! What kind of file system a folder lies on: whether its mode bits mean anything, whether it reports changes.

/// Whether mode bits say who may write. Unknown file systems have them.
#[cfg(target_os = "linux")]
pub(crate) fn has_permission_bits(file: impl std::os::fd::AsFd) -> bool {
    let magic = rustix::fs::fstatfs(file).map(|stat| stat.f_type as u32);
    !matches!(magic, Ok(linux::V9FS | linux::DRVFS))
}

/// Whether mode bits say who may write.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn has_permission_bits(_: impl std::os::fd::AsFd) -> bool {
    true
}

/// The name of the file system a folder lies on, where it does not report what other machines, or Windows, change
/// there.
#[cfg(target_os = "linux")]
pub(crate) fn silent_kind(folder: &std::path::Path) -> Option<&'static str> {
    let stat = rustix::fs::statfs(folder).ok()?;
    let magic = stat.f_type as u32;
    linux::SILENT.iter().find(|(silent, _)| *silent == magic).map(|(_, name)| *name)
}

/// The name of the file system a folder lies on, where it does not report what other machines change there.
#[cfg(target_os = "macos")]
pub(crate) fn silent_kind(folder: &std::path::Path) -> Option<&'static str> {
    let stat = rustix::fs::statfs(folder).ok()?;
    let name: Vec<u8> = stat.f_fstypename.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
    ["nfs", "smbfs", "afpfs", "webdav", "macfuse"].into_iter().find(|silent| silent.as_bytes() == name)
}

/// The name of the file system a folder lies on, where it does not report what other machines change there: a share.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(crate) fn silent_kind(folder: &std::path::Path) -> Option<&'static str> {
    folder.to_str().is_some_and(|path| path.starts_with(r"\\")).then_some("a network share")
}

#[cfg(target_os = "linux")]
mod linux {
    pub(super) const V9FS: u32 = 0x0102_1997;
    pub(super) const DRVFS: u32 = 0x5346_4846;

    /// Magic numbers of `statfs(2)`.
    pub(super) const SILENT: &[(u32, &str)] = &[
        (V9FS, "9p"),
        (DRVFS, "drvfs"),
        (0x6969, "NFS"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB"),
        (0x517b, "SMB"),
        (0x6573_5546, "FUSE"),
        (0x786f_4256, "a VirtualBox shared folder"),
        (0x00c3_6400, "Ceph"),
        (0x5346_414f, "AFS"),
    ];
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn folders_of_this_machine_report_their_changes() {
        assert_eq!(silent_kind(Path::new("/proc")), None);
        assert_eq!(silent_kind(Path::new("/absent")), None);
        assert!(has_permission_bits(std::fs::File::open("/proc").unwrap()));
    }
}
