// Package fault says what is wrong: with a package, with a custom resource, with a
// configuration. A Fault has a code, which tells others what to do about it, and a
// position, a path, a message and a hint, which tell a person.
//
// It is the only package that decides by the errors of CUE (FromCUE); others only show them. What
// kind of fault an error is, it learns from the value that CUE made, and never from the words:
// those differ from one version of CUE to the next. No other package looks at a message to
// decide anything; a test of the architecture refuses that.
//
//	FromCUE(err, value) --> Faults{ {Code, Position, Path, Message, Hint}, ... }
package fault
