package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"operetta.dev/engine/object"
)

// namespaceList is the flag with the namespaces that an operator serves. Whoever gives it names at least one, so that an
// empty variable in a script does not stand for all of them.
type namespaceList struct {
	value *object.Namespaces
	// given are the names in the order in which they were given.
	given []string
}

// namespacesFlag adds the flag.
func namespacesFlag(cmd *cobra.Command, value *object.Namespaces, usage string) {
	cmd.Flags().VarP(&namespaceList{value: value}, "namespace", "n", usage)
}

// String returns the names that are set.
func (l *namespaceList) String() string {
	if l.value == nil {
		return ""
	}
	return l.value.String()
}

// Set adds names that are separated by commas.
func (l *namespaceList) Set(text string) error {
	all := slices.Concat(l.given, strings.Split(text, ","))
	parsed, err := object.ParseNamespaces(all)
	if err != nil {
		return err
	}
	l.given, *l.value = all, parsed
	return nil
}

// Type names the value in the help.
func (l *namespaceList) Type() string { return "namespaces" }
