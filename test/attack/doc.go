// Package attack runs attacks of tenants, who have rights for one namespace and one kind, against the
// operator, on a real control plane with real users and roles. Each test is an attack that once
// succeeded; docs/security.md says what prevents it. The package has only tests.
//
//	go test ./test/attack
package attack
