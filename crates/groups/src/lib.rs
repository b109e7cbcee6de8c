//! Membership, assignment and positions of consumers, whatever door they came by; pure.
