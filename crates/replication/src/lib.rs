//! How copies of a partition agree; pure: events in, commands out.
