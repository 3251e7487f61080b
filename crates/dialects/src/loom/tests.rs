//! The dialect as a client meets it: frames in, frames out, and coming back at any moment.

mod bounds;
mod decode;
mod ends;
mod make;
mod play;
mod reply;
mod resume;
mod trace;
mod waits;
mod wire;
mod world;
