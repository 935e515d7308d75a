// Package policy generates admission policies that protect what the operator trusts, or
// executes with its own permissions. It is pure: it reads and writes no cluster.
//
//	Status    who may write the fields that the engine keeps in a status
//	Patches   which permissions the author of a Patch needs
//
// Each is a ValidatingAdmissionPolicy with a binding whose action is Deny. They need no
// webhook and no running operator. They deny a request that they cannot evaluate.
package policy
