"""What private modules of CuPy have that libraries use, beside the objects of the public modules.

:data:`tcuda.emulation.names.private_modules.MODULES` says which module has the names of which module of CuPy.
"""
