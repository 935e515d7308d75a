// Package attack plays what tenants with rights for one namespace and one kind tried
// against the operator, on a real control plane with real users and roles. Each test is
// an attack that worked once; docs/security.md says what ends it. It has only tests.
//
//	go test ./test/attack
package attack
