package controller

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
)

// A packageMissingKind is the kind of a package that is not served.
type packageMissingKind struct {
	schema.GroupVersionKind
	pkg        string
	namespaced bool
	// reach is where the objects of its resources may be, according to the definition; nil is
	// unknown, as definitions of early versions do not say it.
	reach *program.Reach
	// lastAccount is the account that served it last, according to the definition.
	lastAccount object.Account
}

// scope is that of the kind.
func (k packageMissingKind) scope() cluster.Scope {
	if k.namespaced {
		return cluster.Namespaced
	}
	return cluster.ClusterScoped
}

// kindsDefined returns the kinds of definitions in the versions that the cluster
// prefers. It leaves out definitions that the cluster does not serve yet, which have no resources.
func kindsDefined(definitions []metav1.PartialObjectMetadata, served []*metav1.APIResourceList) []packageMissingKind {
	defined := map[string]metav1.PartialObjectMetadata{}
	for _, d := range definitions {
		defined[d.Name] = d
	}
	var out []packageMissingKind
	for _, list := range served {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			d, ours := defined[r.Name+"."+gv.Group]
			if ours && !strings.Contains(r.Name, "/") {
				out = append(out, packageMissingKind{GroupVersionKind: gv.WithKind(r.Kind), pkg: d.Labels[crd.PackageLabel], namespaced: r.Namespaced, reach: reachOf(d), lastAccount: accountIn(d)})
			}
		}
	}
	return out
}

// reachOf returns the reach of a package according to its definition, or nil.
func reachOf(definition metav1.PartialObjectMetadata) *program.Reach {
	text, said := definition.Annotations[crd.ReachAnnotation]
	reach, err := program.ParseReach(text)
	if !said || err != nil {
		return nil
	}
	return &reach
}

// accountIn returns the account that a definition names, or none.
func accountIn(definition metav1.PartialObjectMetadata) object.Account {
	account, err := object.ParseAccount(definition.Annotations[crd.AccountAnnotation])
	if err != nil {
		return object.Account{}
	}
	return account
}

// logRefused says in one line which kinds the operator may not list. The definitions do not say which operator serves a kind, and most
// of them belong to others, which serve them.
func (s *packageMissingTeardown) logRefused(kinds []string) {
	if len(kinds) == 0 {
		return
	}
	slices.Sort(kinds)
	log := s.log.WithValues("kinds", strings.Join(kinds[:min(len(kinds), maxRefusedKinds)], ", "))
	if more := len(kinds) - maxRefusedKinds; more > 0 {
		log = log.WithValues("more", more)
	}
	log.Info("resources without their package are not looked at: the operator may not list them, and another operator may serve them")
}

// maxRefusedKinds is how many kinds that line names.
const maxRefusedKinds = 10
