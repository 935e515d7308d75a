// Package rights runs the operator under exactly the roles that operetta rbac prints, on a complete
// control plane of its own: the operators of these tests serve all namespaces.
package rights
