// Package worker runs CUE over users' data in processes of its own, which may die: CUE can neither be
// interrupted nor bounded, and it keeps all labels that it has seen for as long as the process runs.
//
//	Pool     the processes: it starts them when they are needed, and ends them when they are not
//	Package  a package whose sessions are evaluated in the processes of a pool
//	Serve    what such a process does: it reads requests and writes responses, one after the other
//
// A process has limits of memory, of stack and of processor time for each evaluation. One that exceeds
// a limit ends itself, with an exit code that says which; that is a program.LimitError of the session.
// The other process kills it if it does not answer at all.
//
// # Who waits for whom
//
// Those who wait for a process take turns by namespace, so that nobody waits for all resources of
// somebody else. Namespaces whose resources have cost a process share one for some minutes: the
// others then always have one that nothing hangs in. Namespaces of which an evaluation has taken long, without exceeding a limit,
// leave one process to the others as well, and let them pass for some seconds.
package worker
