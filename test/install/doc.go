// Package install checks that `go install operetta.dev/cmd/operetta@version` works: that command
// refuses a go.mod with a replace directive, and sees only what a module's zip file may hold.
package install
