// Package policy makes the policies by which an API server says who may write what the
// operator believes, or carries out with its own rights. It is pure: it reads and writes
// no cluster.
//
//	Status    who writes what the engine keeps in a status
//	Patches   whose right it takes to patch an object
//
// Each is a ValidatingAdmissionPolicy with a binding that denies. They need no webhook
// and no running operator. What they cannot decide is denied.
package policy
