// Package install makes the objects by which an operator runs in a cluster: its namespace and service
// account, the Deployment with what belongs to it, and its packages. Package rbac makes its roles, and
// package policy the admission policies.
package install
