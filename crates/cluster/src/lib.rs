//! The catalog's state machine and placement; pure: facts in, plans out.
