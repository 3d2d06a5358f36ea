"""Plans of Fourier transforms, their cache and their settings."""
