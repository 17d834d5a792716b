//! Which one of the clients a message is for.

use crate::paths::{Host, best_match};

/// A client that has completed the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientInfo {
    /// Number of the link, never used twice in one server.
    pub id: u64,
    /// Its name, `pi-x-ide` for this product.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its working folder in this host's form, where it told one.
    pub cwd: Option<String>,
    /// Name of the editor's terminal that it runs in, where it told one.
    pub terminal_session_id: Option<String>,
}

/// The client that a message was given to, and why it was this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutedClient {
    /// Which one.
    pub client: ClientInfo,
    /// Why.
    pub chosen_by: ChosenBy,
}

/// What decided for a client, the strongest reason first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenBy {
    /// It runs in the terminal that was asked for.
    Terminal,
    /// Its folder contains the file, or lies in the same workspace folder.
    Workspace,
    /// Nothing but that it was chosen, joined or prompted last.
    LastUsed,
}

/// What a message for one client is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    /// Terminal whose client is meant.
    pub(super) terminal_session_id: Option<&'a str>,
    /// Its file.
    pub(super) file: &'a str,
    /// Workspace folder that the editor counts the file to.
    pub(super) workspace_folder: Option<&'a str>,
}

/// The index of the client that a message is for; `None` when there is no client.
///
/// `clients` come with the number of their last use. `open_folders` tell the workspace folder of a message that names
/// none. A file-system root is nobody's workspace, as in discovery: it would claim every file.
pub(super) fn choose<'a>(
    host: &Host,
    open_folders: &[String],
    clients: impl Iterator<Item = (&'a ClientInfo, u64)> + Clone,
    about: &Subject<'_>,
) -> Option<(usize, ChosenBy)> {
    let named = about.workspace_folder.filter(|folder| !folder.is_empty()).map(str::to_owned);
    let folder = named.or_else(|| {
        let found = best_match(host, open_folders, about.file, host.ignores_case());
        found.folder.filter(|_| found.direct)
    });
    let in_terminal = |client: &ClientInfo| {
        let is_there = client.terminal_session_id.as_deref()? == about.terminal_session_id?;
        is_there.then_some(0)
    };
    let near_file = |client: &ClientInfo| depth_above(host, client.cwd.as_deref()?, about.file);
    let in_workspace = |client: &ClientInfo| {
        let (cwd, folder) = (client.cwd.as_deref()?, folder.as_deref()?);
        depth_above(host, folder, cwd).or_else(|| depth_above(host, cwd, folder)).map(|_| 0)
    };
    let chosen = |at: Option<usize>, by: ChosenBy| at.map(|at| (at, by));
    chosen(best(clients.clone(), in_terminal), ChosenBy::Terminal)
        .or_else(|| chosen(best(clients.clone(), near_file), ChosenBy::Workspace))
        .or_else(|| chosen(best(clients.clone(), in_workspace), ChosenBy::Workspace))
        .or_else(|| chosen(best(clients, |_| Some(0)), ChosenBy::LastUsed))
}

/// Of the clients that have a rank the one with the highest, of equal ones the one used last.
fn best<'a>(
    clients: impl Iterator<Item = (&'a ClientInfo, u64)>,
    rank: impl Fn(&ClientInfo) -> Option<u32>,
) -> Option<usize> {
    let ranked = clients.enumerate().filter_map(|(at, (client, last_use))| Some((rank(client)?, last_use, at)));
    ranked.max().map(|(_, _, at)| at)
}

/// A number that grows with the depth of `folder`, if it contains `path`.
fn depth_above(host: &Host, folder: &str, path: &str) -> Option<u32> {
    let found = best_match(host, &[folder], path, host.ignores_case());
    found.direct.then_some(found.length)
}

#[cfg(test)]
mod tests {
    use ChosenBy::{LastUsed, Terminal, Workspace};

    use super::super::roster::Roster;
    use super::*;
    use crate::paths::{Os, Wsl};
    use crate::protocol::json_rpc::{InitializeParams, ServerInfo};

    /// A server with these open folders and clients, each a folder and a terminal; their ids count from 1.
    fn roster(host: Host, folders: &[&str], clients: &[(&str, &str)]) -> Roster {
        let roster = Roster::new(host, folders.iter().map(|&folder| folder.to_owned()).collect());
        for &(cwd, terminal) in clients {
            join(&roster, cwd, terminal);
        }
        roster
    }

    fn join(roster: &Roster, cwd: &str, terminal: &str) {
        let text = |text: &str| (text != "-").then(|| text.to_owned());
        let params =
            InitializeParams { cwd: text(cwd), terminal_session_id: text(terminal), ..InitializeParams::default() };
        roster.join(params, &ServerInfo { name: "x".into(), version: None, ide: None });
    }

    fn linux() -> Host {
        Host { os: Os::Linux, wsl: None }
    }

    fn subject<'a>(file: &'a str, folder: &'a str, terminal: &'a str) -> Subject<'a> {
        let text = |text: &'a str| (text != "-").then_some(text);
        Subject { file, workspace_folder: text(folder), terminal_session_id: text(terminal) }
    }

    fn route(roster: &Roster, about: Subject<'_>) -> Option<(u64, ChosenBy)> {
        roster.route(&about).map(|routed| (routed.client.id, routed.chosen_by))
    }

    #[test]
    fn terminal_then_workspace_then_last_use() {
        const CLIENTS: &[(&str, &str)] =
            &[("/w", "t1"), ("/w/a", "t2"), ("/w/a", "-"), ("/v/x/y", "t1"), ("/v/x/z", ""), ("/", "-"), ("-", "-")];
        for (about, expected) in [
            // The same terminal wins over any folder; of two the one used last.
            (subject("/w/a/x", "-", "t2"), (2, Terminal)),
            (subject("/elsewhere/x", "-", "t2"), (2, Terminal)),
            (subject("/w/a/x", "-", "t1"), (4, Terminal)),
            // An unknown terminal, and one without a name, are no terminal.
            (subject("/w/b", "-", "t3"), (1, Workspace)),
            (subject("/w/b", "-", ""), (1, Workspace)),
            // The nearest folder that contains the file; of equal ones the one used last.
            (subject("/w/a/x", "-", "-"), (3, Workspace)),
            (subject("/w/a", "-", "-"), (3, Workspace)),
            (subject("/w/ab", "-", "-"), (1, Workspace)),
            (subject("/v/x/y/f", "/v/x/z", "-"), (4, Workspace)),
            // The workspace folder of the message, else the longest open one that contains the file.
            (subject("/v/x/f", "/v/x", "-"), (5, Workspace)),
            (subject("/v/x/f", "-", "-"), (5, Workspace)),
            (subject("/v/x/f", "", "-"), (5, Workspace)),
            (subject("/v/x/y2/f", "-", "-"), (5, Workspace)),
            (subject("/elsewhere/x", "/v/x/y", "-"), (4, Workspace)),
            (subject("/elsewhere/x", "/w/a/b", "-"), (3, Workspace)),
            (subject("/v/x/f", "/elsewhere", "-"), (7, LastUsed)),
            // Neither: also a root is nobody's workspace, nor is an open folder without the file.
            (subject("/elsewhere/x", "-", "-"), (7, LastUsed)),
            (subject("/elsewhere/x", "/", "-"), (7, LastUsed)),
            (subject("/v/f", "relative", "-"), (7, LastUsed)),
            (subject("relative", "-", "-"), (7, LastUsed)),
        ] {
            let roster = roster(linux(), &["/", "/w", "/v/x", "/v/x/y/deep"], CLIENTS);
            assert_eq!(route(&roster, about), Some(expected), "{about:?}");
        }
    }

    #[test]
    fn the_longest_open_folder_counts_as_it_is_now() {
        let roster = roster(linux(), &["/w/a/b", "/w/a"], &[("/w/a/b/c", "-"), ("/w/a/d", "-")]);
        let about = subject("/w/a/b/f", "-", "-");
        assert_eq!(route(&roster, about), Some((1, Workspace)), "of /w/a/b");
        roster.set_workspace_folders(vec!["/w/a".into()]);
        roster.note_use(2);
        assert_eq!(route(&roster, about), Some((2, Workspace)), "of /w/a");
        roster.set_workspace_folders(Vec::new());
        assert_eq!(route(&roster, about), Some((2, LastUsed)));
    }

    #[test]
    fn whoever_was_chosen_joined_or_prompted_last_is_the_one_used_last() {
        let roster = roster(linux(), &[], &[]);
        let lost = subject("/elsewhere", "-", "-");
        assert_eq!(route(&roster, lost), None);
        join(&roster, "/a", "-");
        join(&roster, "/b", "-");
        assert_eq!(route(&roster, lost), Some((2, LastUsed)), "joined");
        assert_eq!(route(&roster, subject("/a/f", "-", "-")), Some((1, Workspace)));
        assert_eq!(route(&roster, lost), Some((1, LastUsed)), "chosen");
        roster.note_use(2);
        roster.note_use(99);
        assert_eq!(route(&roster, lost), Some((2, LastUsed)), "prompted");
        roster.leave(2);
        assert_eq!(route(&roster, lost), Some((1, LastUsed)), "the other one has left");
        roster.leave(1);
        assert_eq!(route(&roster, lost), None);
    }

    #[test]
    fn folders_of_the_wire_are_taken_in_this_hosts_form() {
        let windows = roster(Host { os: Os::Windows, wsl: None }, &[r"C:\w"], &[("/mnt/c/W/a", "-"), ("/home/u", "-")]);
        assert_eq!(route(&windows, subject(r"c:\w\A\f", "-", "-")), Some((1, Workspace)));
        let cwds = windows.clients().into_iter().map(|client| client.cwd.unwrap());
        assert_eq!(cwds.collect::<Vec<_>>(), [r"C:\W\a", "/home/u"]);
        let wsl = Wsl { distro: "U".into(), automount_root: "/mnt".into() };
        let wsl = roster(Host { os: Os::Linux, wsl: Some(wsl) }, &[], &[(r"\\wsl$\U\home\u", "-"), (r"C:\w", "-")]);
        assert_eq!(route(&wsl, subject("/home/u/f", "-", "-")), Some((1, Workspace)));
        assert_eq!(route(&wsl, subject(r"C:\w\f", "-", "-")), Some((2, Workspace)));
        assert_eq!(wsl.clients()[1].cwd.as_deref(), Some("/mnt/c/w"));
    }
}
