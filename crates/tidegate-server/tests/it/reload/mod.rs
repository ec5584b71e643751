//! Rules that change while a server decides by them: by signal, and by whoever watches their file.

mod place;
mod signals;
mod thousand;
mod traffic;
mod watched;
