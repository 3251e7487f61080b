//! Where a body ends, and what of the bytes behind a head are the body.
//!
//! Knows bytes alone; what they were cut into makes no difference.

/// Of what stands beside the body: names behind sizes, and trailers.
const BESIDE_BYTES_MAX: usize = 16 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Chunked(Chunked),
    /// So much is left.
    Length(u64),
    /// It ends with the connection.
    UntilClosed,
    Over,
}

/// Where in a chunked body the next byte falls.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chunked {
    at: At,
    /// Bytes beside the body so far.
    beside: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In the size of a chunk.
    Size {
        size: u64,
        digits: u8,
    },
    /// Behind it, until the end of the line.
    Named {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// The end of the line behind a chunk.
    Behind,
    /// In the lines behind the last chunk.
    Trailer {
        empty: bool,
    },
}

/// What was in the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Had {
    /// Something of the body.
    pub any: bool,
}

const NEW_CHUNK: At = At::Size { size: 0, digits: 0 };

impl Framing {
    pub(super) fn chunked() -> Framing {
        Framing::Chunked(Chunked { at: NEW_CHUNK, beside: 0 })
    }

    pub(super) fn length(bytes: u64) -> Framing {
        if bytes == 0 { Framing::Over } else { Framing::Length(bytes) }
    }

    pub(super) fn is_over(&self) -> bool {
        *self == Framing::Over
    }

    /// Gives what is of the body to `take`; no bytes are the end of the connection. What stands
    /// behind the end of the body is passed over.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<Had, &'static str> {
        let had = |part: &[u8]| Had { any: !part.is_empty() };
        match self {
            Framing::Over => Ok(Had::default()),
            Framing::UntilClosed if bytes.is_empty() => {
                *self = Framing::Over;
                Ok(Had::default())
            }
            Framing::Length(_) | Framing::Chunked(_) if bytes.is_empty() => {
                Err("the connection was closed")
            }
            Framing::UntilClosed => {
                take(bytes);
                Ok(had(bytes))
            }
            Framing::Length(left) => {
                let part = &bytes[..bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX))];
                *left -= part.len() as u64;
                if *left == 0 {
                    *self = Framing::Over;
                }
                take(part);
                Ok(had(part))
            }
            Framing::Chunked(chunked) => {
                let had = chunked.read(bytes, take)?;
                if had.over {
                    *self = Framing::Over;
                }
                Ok(Had { any: had.any })
            }
        }
    }
}

struct Found {
    any: bool,
    over: bool,
}

impl Chunked {
    fn read(
        &mut self,
        mut rest: &[u8],
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<Found, &'static str> {
        let mut any = false;
        while let Some(&byte) = rest.first() {
            if let At::Data { left } = &mut self.at {
                let until = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                take(&rest[..until]);
                any = true;
                *left -= until as u64;
                if *left == 0 {
                    self.at = At::Behind;
                }
                rest = &rest[until..];
                continue;
            }
            rest = &rest[1..];
            if self.step(byte)? {
                return Ok(Found { any, over: true });
            }
        }
        Ok(Found { any, over: false })
    }

    /// One byte that is not of the body; true when it was the last.
    fn step(&mut self, byte: u8) -> Result<bool, &'static str> {
        self.at = match (self.at, byte) {
            (At::Size { size, digits }, byte) if byte.is_ascii_hexdigit() => {
                if digits == 16 {
                    return Err("the size of a chunk is too long");
                }
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                At::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }
            }
            (At::Size { digits: 0, .. }, _) => return Err("a chunk has no size"),
            (At::Size { size, .. } | At::Named { size }, b'\n') => match size {
                0 => At::Trailer { empty: true },
                left => At::Data { left },
            },
            (At::Size { size, .. }, b'\r' | b';' | b' ' | b'\t') => At::Named { size },
            (At::Size { .. }, _) => return Err("the size of a chunk is no number"),
            (At::Named { size }, _) => {
                self.aside()?;
                At::Named { size }
            }
            (At::Behind, b'\r') => At::Behind,
            (At::Behind, b'\n') => NEW_CHUNK,
            (At::Behind, _) => return Err("a chunk is longer than its size"),
            (At::Trailer { empty: true }, b'\n') => return Ok(true),
            (At::Trailer { .. }, b'\n') => At::Trailer { empty: true },
            (At::Trailer { empty }, b'\r') => At::Trailer { empty },
            (At::Trailer { .. }, _) => {
                self.aside()?;
                At::Trailer { empty: false }
            }
            (At::Data { left }, _) => At::Data { left },
        };
        Ok(false)
    }

    fn aside(&mut self) -> Result<(), &'static str> {
        self.beside += 1;
        if self.beside > BESIDE_BYTES_MAX {
            return Err("more stands beside the chunks than is read");
        }
        Ok(())
    }
}
