"""The Django side: state and screens. Apps form a chain; evidence is pushed down, never pulled up."""
