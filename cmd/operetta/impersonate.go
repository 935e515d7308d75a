package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"operetta.dev/engine/object"
)

// impersonations is the flag that says as which ServiceAccounts the operator acts for packages, by the names of these.
type impersonations map[string]object.Account

// addFlag adds the flag.
func (i *impersonations) addFlag(cmd *cobra.Command) {
	*i = impersonations{}
	cmd.Flags().Var(i, "impersonate", "package=namespace/name of the service account as which the operator acts for the resources of a package; repeat the flag for more")
}

// String returns the value that is set.
func (i *impersonations) String() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(*i)) {
		out = append(out, name+"="+(*i)[name].String())
	}
	return strings.Join(out, ",")
}

// Set adds one.
func (i *impersonations) Set(text string) error {
	name, rest, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("write package=namespace/name")
	}
	account, err := object.ParseAccount(rest)
	if err != nil {
		return err
	}
	if was, twice := (*i)[name]; twice && was != account {
		return fmt.Errorf("package %s has two: %s and %s", name, was, account)
	}
	(*i)[name] = account
	return nil
}

// all returns the accounts, each once.
func (i *impersonations) all() []object.Account {
	out := slices.Collect(maps.Values(*i))
	slices.SortFunc(out, func(a, b object.Account) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// Type names the value in the help.
func (i *impersonations) Type() string { return "package=namespace/name" }
