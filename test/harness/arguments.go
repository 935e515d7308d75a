package harness

import (
	"slices"
	"strings"
)

// switches are the flags of operetta run that take no value.
var switches = []string{"leader-elect", "packages-from-cluster", "metrics-secure", "shadow", "record-annotated", "delete", "until-same"}

// arguments are those of operetta run.
type arguments struct {
	packages []string
	flags    map[string][]string
}

// parseArguments tells packages from flags and their values.
func parseArguments(args []string) arguments {
	out := arguments{flags: map[string][]string{}}
	for i := 0; i < len(args); i++ {
		flag, isFlag := strings.CutPrefix(args[i], "--")
		name, value, has := strings.Cut(flag, "=")
		switch {
		case !isFlag:
			out.packages = append(out.packages, args[i])
			continue
		case !has && !slices.Contains(switches, name) && i+1 < len(args):
			i++
			value = args[i]
		}
		out.flags[name] = append(out.flags[name], value)
	}
	return out
}

// has reports whether there is a flag.
func (a arguments) has(name string) bool { return len(a.flags[name]) > 0 }

// first returns the first value of a flag, or another one if there is none.
func (a arguments) first(name, otherwise string) string {
	if a.has(name) {
		return a.flags[name][0]
	}
	return otherwise
}

// alike are the flags that mean the same to operetta rbac and to operetta run.
var alike = []string{"config-map", "impersonate", "leader-election-id", "namespace", "overlay", "shards"}

// commandOf returns the command that prints the roles of an operator in a namespace.
func commandOf(namespace string, args []string) []string {
	a := parseArguments(args)
	account := a.first("leader-elect-namespace", namespace) + "/operetta"
	command := []string{"rbac"}
	if secret := a.first("webhook-secret", ""); secret != "" {
		command, account = []string{"install", "--webhooks"}, strings.TrimSuffix(secret, "-webhooks")
	}
	command = append(command, a.packages...)
	command = append(command, "--service-account", account, "--crds", a.first("crds", "apply"))
	for _, name := range alike {
		for _, value := range a.flags[name] {
			command = append(command, "--"+name+"="+value)
		}
	}
	if !a.has("leader-elect") && command[0] == "rbac" {
		command = append(command, "--leader-election-id=")
	}
	if a.has("packages-from-cluster") {
		command = append(command, "--packages-from-cluster")
	}
	if a.has("metrics-token-file") {
		command = append(command, "--metrics-token-secret=token")
	}
	return command
}
