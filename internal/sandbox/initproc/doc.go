// Package initproc makes the processes of a run: everything between clone and
// exec, and the first process inside.
//
// The engine never forks. It starts, once per slot, a static program of 3 KiB
// without libc (spawner/spawner.c) and hands it one table of system calls by which
// it moves into the root that all its runs share, and then one table per run:
//
//	engine                     spawner (host side)          PID 1 of the run           program
//	  |  request + descriptors   |                            |                          |
//	  |------------------------->| clone(namespaces)          |                          |
//	  |<-- SPAWNED pid ----------|--------------------------->| map the table            |
//	  |                          |<---- id maps, please ------| OP_MAPS                  |
//	  |                          | write /proc/<pid>/*_map    |                          |
//	  |                          |------- done -------------->| mounts, identity, limits,|
//	  |                          |                            | capabilities, seccomp    |
//	  |                          |                            | OP_FORK (vfork) -------->| setsid, execve
//	  |<-------------------------------- STARTED -------------|                          |
//	  |                          |                            | wait4                    | runs
//	  |<-------------------------------- EXITED status -------|<-------------------------| ends
//	  |                          |                            | exit: the kernel ends    |
//	  |<-- REAPED ---------------|<---------------------------| all that is left         |
//
// Between runs the spawner can be told to walk a table itself ([Spawner.Walk]):
// what it changes about itself, its next children inherit.
//
// Any system call of the table that fails ends the child with FAILED (index,
// errno); the engine knows the name of each index and renders the sentence.
//
// The table is a file in memory, mapped at a fixed address, so that the engine
// can write every pointer in it beforehand and the child needs no relocation, no
// allocation and no parsing. PID 1 is a forked copy of the spawner, not of the
// engine: no process of a run ever shares memory with the engine, and what PID 1
// holds is the table of its own run.
//
// Life and death: PID 1 has a parent-death signal on the spawner, the spawner
// ends when its control socket closes, and the kernel ends a PID namespace with
// its PID 1. So killing the engine at any instant ends every run.
//
// The program is a child of PID 1 and not PID 1 itself: signals that a program
// sends to itself behave, and its raw wait status reaches the engine unchanged.
package initproc

//go:generate ./spawner/build.sh
