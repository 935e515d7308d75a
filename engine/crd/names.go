package crd

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"operetta.dev/engine/fault"
)

// checkDefinition returns the faults in names and versions. The API server would reject them
// too, but much later and without the path.
func checkDefinition(def Definition) []fault.Fault {
	var faults []fault.Fault
	bad := func(path, problem, hint string) {
		faults = append(faults, fault.Fault{Path: path, Message: problem, Hint: hint})
	}
	for _, problem := range validation.IsDNS1123Subdomain(def.Group) {
		bad("group", quoted(def.Group)+problem, "")
	}
	switch {
	case !strings.Contains(def.Group, "."):
		bad("group", quoted(def.Group)+"a group must be a domain that you own", `write "example.com"`)
	case isProtectedGroup(def.Group):
		bad("group", quoted(def.Group)+"the Kubernetes project owns this domain", "use a domain that you own")
	}
	for _, problem := range validation.IsDNS1035Label(strings.ToLower(def.Kind)) {
		bad("kind", quoted(def.Kind)+problem, "")
	}
	names := append([]string{def.Plural, def.Singular}, append(def.ShortNames, def.Categories...)...)
	for _, name := range slices.Compact(names) {
		for _, problem := range validation.IsDNS1035Label(name) {
			bad("names", quoted(name)+problem, "")
		}
	}
	if def.Scope != apiextensionsv1.NamespaceScoped && def.Scope != apiextensionsv1.ClusterScoped {
		bad("scope", quoted(string(def.Scope))+"unknown scope", `write "Namespaced" or "Cluster"`)
	}
	return append(faults, checkVersions(def.Versions)...)
}

func checkVersions(versions []Version) []fault.Fault {
	var faults []fault.Fault
	bad := func(path, problem, hint string) {
		faults = append(faults, fault.Fault{Path: path, Message: problem, Hint: hint})
	}
	var stored, seen []string
	for _, v := range versions {
		path := "versions." + v.Name
		for _, problem := range validation.IsDNS1035Label(v.Name) {
			bad(path, quoted(v.Name)+problem, "")
		}
		if slices.Contains(seen, v.Name) {
			bad(path, "the version is declared twice", "")
		}
		seen = append(seen, v.Name)
		if v.Storage {
			stored = append(stored, v.Name)
		}
		faults = append(faults, checkColumns(path+".printerColumns", v.PrinterColumns)...)
	}
	switch {
	case len(versions) == 0:
		bad("versions", "there is no version", "write versions: v1: spec: #Spec")
	case len(stored) != 1:
		bad("versions", fmt.Sprintf("%d versions are the storage version %v", len(stored), stored),
			"write storage: true in exactly one version")
	}
	return faults
}

// isProtectedGroup reports whether the API server accepts CRDs of a group only with an approval
// annotation.
func isProtectedGroup(group string) bool {
	for _, domain := range []string{"k8s.io", "kubernetes.io"} {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			return true
		}
	}
	return false
}

func quoted(name string) string { return fmt.Sprintf("%q: ", name) }
