//! Message ids that need not be remembered: the same session, place and part always give the same
//! id, after a restart too. They look like UUIDs (version 8) and hold their place in the last
//! group, so that an answer can name the request it answers.

use polyloop_session::{Seq, SessionId, TurnId, WaitId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdKind {
    /// A message about an entry; part `n` of it.
    Entry(u16),
    /// Characters of an item, by their offset.
    Growth(u64),
    /// A request that waits for an answer.
    Request,
    /// An answer to one client, by the connection's count.
    Reply,
    /// A turn, as clients that know runs call it.
    Run,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    session: u64,
}

impl Ids {
    pub(crate) fn new(session: Option<&SessionId>) -> Ids {
        Ids { session: fnv(session.map_or("", SessionId::as_str).bytes()) }
    }

    /// Tells ids of this session from those of another, where they are made of places alone.
    pub(crate) fn tag(self) -> String {
        format!("{:08x}", self.session & 0xffff_ffff)
    }

    pub(crate) fn id(self, kind: IdKind, place: Seq) -> String {
        let (tag, salt) = match kind {
            IdKind::Entry(part) => (1_u64, u64::from(part)),
            IdKind::Growth(offset) => (2, offset),
            IdKind::Request => (3, 0),
            IdKind::Reply => (4, 0),
            IdKind::Run => (5, 0),
        };
        let low = place.0 & 0xffff_ffff_ffff;
        let mixed = fnv(self.session.to_le_bytes().into_iter().chain(salt.to_le_bytes()));
        // The version and the variant stand in the first digits of the third and fourth group.
        let mixed = (mixed & 0xffff_ffff_ffff_0fff) | 0x8000;
        hyphenated(mixed, 0x8000_0000_0000_0000 | (tag << 48) | low)
    }

    /// The wait that a request id of this session names.
    pub(crate) fn wait(self, id: &str) -> Option<WaitId> {
        self.place(IdKind::Request, id).map(WaitId)
    }

    /// The turn that a run's id names.
    pub(crate) fn turn(self, id: &str) -> Option<TurnId> {
        self.place(IdKind::Run, id).map(TurnId)
    }

    fn place(self, kind: IdKind, id: &str) -> Option<Seq> {
        let place = Seq(u64::from_str_radix(id.rsplit('-').next()?, 16).ok()?);
        (self.id(kind, place) == id.to_ascii_lowercase()).then_some(place)
    }
}

/// In the form of a UUID, without the detour that `format!` takes: one stands in every message.
fn hyphenated(high: u64, low: u64) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut id = String::with_capacity(36);
    for (at, byte) in high.to_be_bytes().into_iter().chain(low.to_be_bytes()).enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        id.push(char::from(DIGITS[usize::from(byte >> 4)]));
        id.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    id
}

/// FNV-1a: short, stable over versions, and not a secret.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_that_ends_with_its_place() {
        let session = SessionId::parse("one").ok();
        let id = Ids::new(session.as_ref()).id(IdKind::Growth(57), Seq(0x12_3456_789a));
        let groups: Vec<&str> = id.split('-').collect();
        assert_eq!(groups.iter().map(|group| group.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert_eq!(&groups[2][..1], "8");
        assert_eq!(groups[3..], ["8002", "00123456789a"]);
        assert_eq!(id, id.to_ascii_lowercase());
    }

    #[test]
    fn a_request_id_names_its_wait_in_its_own_session_only() {
        let one = SessionId::parse("one").ok();
        let two = SessionId::parse("two").ok();
        let (one, two) = (Ids::new(one.as_ref()), Ids::new(two.as_ref()));
        let id = one.id(IdKind::Request, Seq(77));
        assert_eq!(id.len(), 36);
        assert_eq!(one.wait(&id), Some(WaitId(Seq(77))));
        assert_eq!(one.wait(&id.to_uppercase()), Some(WaitId(Seq(77))));
        assert_eq!(two.wait(&id), None);
        assert_eq!(one.wait(&one.id(IdKind::Entry(0), Seq(77))), None);
        for nonsense in ["", "-", "zz", "ffffffffffffffffffffff"] {
            assert_eq!(one.wait(nonsense), None);
        }
    }
}
