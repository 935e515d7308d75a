// Package rbac derives the roles of an operator from its packages: what the branches of a package may
// render and read, with the verbs that the engine uses, and what the engine itself needs. A role has no
// wildcard, and gives neither escalate nor bind.
package rbac
