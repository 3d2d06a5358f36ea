"""The protocols of ``tcuda._backend`` on emulated devices."""
