"""The program that trains: runs in the platform's pods, under torchrun, mpirun or srun, or alone on a laptop.

The modules that others import before there is any accelerator use the standard library only: `config`, `schema`, `batch`, `schedule`,
`shuffle`, `launch`, `exit_codes`, `recipes`.
"""
