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
	cmd.Flags().Func("impersonate", "`package=namespace/name` of the service account as which the operator acts for the resources of a package; repeat the flag for more", i.set)
}

// set adds one.
func (i *impersonations) set(text string) error {
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
	return slices.Compact(slices.SortedFunc(maps.Values(*i), func(a, b object.Account) int { return strings.Compare(a.String(), b.String()) }))
}

// unknown returns the names that no package in some folders has, sorted.
func (i *impersonations) unknown(dirs []string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(*i)) {
		if !slices.ContainsFunc(dirs, func(dir string) bool { return packageName(dir) == name }) {
			out = append(out, name)
		}
	}
	return out
}

// checkAccounts errors if an account is for a package that is not given: the package that somebody means would get the rights of
// the operator itself.
func (f *rbacFlags) checkAccounts(args []string) error {
	if f.options.PackageObjects || len(f.accounts) == 0 {
		return nil
	}
	dirs, err := f.folders(args)
	if err != nil {
		return err
	}
	unknown := f.accounts.unknown(dirs)
	if len(unknown) == 0 {
		return nil
	}
	names := make([]string, len(dirs))
	for i, dir := range dirs {
		names[i] = packageName(dir)
	}
	slices.Sort(names)
	return usageError{fmt.Errorf("--impersonate %s=%s: no package has this name, but %s; a Package of the cluster needs --packages-from-cluster, too", unknown[0], f.accounts[unknown[0]], strings.Join(names, ", "))}
}

// unusedAccounts returns the names of --impersonate that no package in the folders has. They are no error: the resources of a
// package that is gone are torn down as its account.
func (f *runFlags) unusedAccounts(dirs []string) []string {
	if f.packages.fromCluster {
		return nil
	}
	return f.accounts.unknown(dirs)
}

// unusedAccount begins the warnings about accounts.
const unusedAccount = "no package in the folders has the name of --impersonate"
