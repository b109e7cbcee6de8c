//! The outside: clock, chance, disk, memory, tasks; one real, one simulated.
