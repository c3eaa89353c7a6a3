"""The pocket model: small enough to train and to serve on one CPU core. See MODEL_CARD.md."""
