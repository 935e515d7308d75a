package crd

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// checkDefinition adds the faults in names and versions. The API server would reject them too,
// but much later and without the path.
func (g *generator) checkDefinition(def CustomResource) {
	for _, problem := range validation.IsDNS1123Subdomain(def.Group) {
		g.fault(root("group"), quoted(def.Group)+problem, "")
	}
	switch {
	case !strings.Contains(def.Group, "."):
		g.fault(root("group"), quoted(def.Group)+"a group must be a domain that you own", `write "example.com"`)
	case apihelpers.IsProtectedCommunityGroup(def.Group):
		g.fault(root("group"), quoted(def.Group)+"the Kubernetes project owns this domain", "use a domain that you own")
	}
	for _, problem := range validation.IsDNS1035Label(strings.ToLower(def.Kind)) {
		g.fault(root("kind"), quoted(def.Kind)+problem, "")
	}
	names := append([]string{def.Plural, def.Singular}, append(def.ShortNames, def.Categories...)...)
	for _, name := range slices.Compact(names) {
		for _, problem := range validation.IsDNS1035Label(name) {
			g.fault(root("names"), quoted(name)+problem, "")
		}
	}
	if def.Scope != apiextensionsv1.NamespaceScoped && def.Scope != apiextensionsv1.ClusterScoped {
		g.fault(root("scope"), quoted(string(def.Scope))+"unknown scope", `write "Namespaced" or "Cluster"`)
	}
	g.checkVersions(def.Versions)
}

func (g *generator) checkVersions(versions []Version) {
	var stored, seen []string
	for _, v := range versions {
		path := root("versions." + v.Name)
		for _, problem := range validation.IsDNS1035Label(v.Name) {
			g.fault(path, quoted(v.Name)+problem, "")
		}
		if slices.Contains(seen, v.Name) {
			g.fault(path, "the version is declared twice", "")
		}
		seen = append(seen, v.Name)
		if v.Storage {
			stored = append(stored, v.Name)
		}
		g.checkColumns(path.field("printerColumns"), v.PrinterColumns)
	}
	switch {
	case len(versions) == 0:
		g.fault(root("versions"), "there is no version", "write versions: v1: spec: #Spec")
	case len(stored) != 1:
		g.fault(root("versions"), fmt.Sprintf("%d versions are the storage version %v", len(stored), stored),
			"write storage: true in exactly one version")
	}
}

func quoted(name string) string { return fmt.Sprintf("%q: ", name) }
