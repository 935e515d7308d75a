package rbac

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// A Permission is one verb on one resource. Rules with the same permissions are equal, however they are
// written.
type Permission struct {
	// Namespace is where the permission holds; "" is everywhere.
	Namespace string
	Group     string
	// Resource is a plural name with its subresource, as in deployments/status.
	Resource string
	// Name restricts the permission to one object; "" is all.
	Name string
	Verb string
	// URL is the path of a permission on no resource, in place of Group and Resource.
	URL string
}

// String returns the permission in the words of kubectl auth can-i.
func (p Permission) String() string {
	text := p.Verb + " " + p.URL
	if p.URL == "" {
		text = p.Verb + " " + p.Resource
		if p.Group != "" {
			name, sub, has := strings.Cut(p.Resource, "/")
			text = p.Verb + " " + name + "." + p.Group
			if has {
				text += "/" + sub
			}
		}
	}
	if p.Name != "" {
		text += " " + p.Name
	}
	if p.Namespace != "" {
		return text + " in namespace " + p.Namespace
	}
	return text
}

// Compare orders permissions as they are printed.
func (p Permission) Compare(q Permission) int {
	return cmp.Or(
		cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Group, q.Group), cmp.Compare(p.Resource, q.Resource),
		cmp.Compare(p.URL, q.URL), cmp.Compare(p.Name, q.Name), cmp.Compare(verbRank(p.Verb), verbRank(q.Verb)), cmp.Compare(p.Verb, q.Verb),
	)
}

// verbOrder is the order in which verbs are usually written. Others follow.
var verbOrder = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

func verbRank(verb string) int {
	if i := slices.Index(verbOrder, verb); i >= 0 {
		return i
	}
	return len(verbOrder)
}

// permissions is a set of permissions.
type permissions map[Permission]bool

// allow adds verbs on a resource.
func (s permissions) allow(at Permission, verbs ...string) {
	for _, v := range verbs {
		at.Verb = v
		s[at] = true
	}
}

// allowRules adds what rules allow in a namespace.
func (s permissions) allowRules(namespace string, rules []rbacv1.PolicyRule) {
	for _, r := range rules {
		for _, url := range r.NonResourceURLs {
			s.allow(Permission{URL: url}, r.Verbs...)
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				names := r.ResourceNames
				if len(names) == 0 {
					names = []string{""}
				}
				for _, name := range names {
					s.allow(Permission{Namespace: namespace, Group: group, Resource: resource, Name: name}, r.Verbs...)
				}
			}
		}
	}
}

// minimal returns the permissions without those on single objects that hold for all of them.
func (s permissions) minimal() permissions {
	out := permissions{}
	for p := range s {
		everywhere, all := p, p
		everywhere.Namespace, all.Name = "", ""
		if p.Name != "" && s[all] || p.Namespace != "" && s[everywhere] {
			continue
		}
		out[p] = true
	}
	return out
}

// sorted returns the permissions in the order in which they are printed.
func (s permissions) sorted() []Permission {
	return slices.SortedFunc(maps.Keys(s), Permission.Compare)
}

// rules returns the rules of the permissions that hold in a namespace. Resources of one group with the
// same verbs share a rule, and so do names of one resource.
func (s permissions) rules(namespace string) []rbacv1.PolicyRule {
	verbs := map[Permission][]string{}
	var order []Permission
	for _, p := range s.sorted() {
		if p.Namespace != namespace {
			continue
		}
		on := p
		on.Verb = ""
		if verbs[on] == nil {
			order = append(order, on)
		}
		verbs[on] = append(verbs[on], p.Verb)
	}
	var out []rbacv1.PolicyRule
	shared := map[string]int{}
	for _, on := range order {
		if on.URL != "" {
			out = append(out, rbacv1.PolicyRule{NonResourceURLs: []string{on.URL}, Verbs: verbs[on]})
			continue
		}
		rule := rbacv1.PolicyRule{APIGroups: []string{on.Group}, Resources: []string{on.Resource}, Verbs: verbs[on]}
		key := fmt.Sprintf("%s||%q", on.Group, rule.Verbs)
		if on.Name != "" {
			rule.ResourceNames = []string{on.Name}
			key = fmt.Sprintf("%s|%s|%q", on.Group, on.Resource, rule.Verbs)
		}
		switch i, known := shared[key]; {
		case known && on.Name != "":
			out[i].ResourceNames = append(out[i].ResourceNames, on.Name)
			continue
		case known:
			out[i].Resources = append(out[i].Resources, on.Resource)
			continue
		}
		shared[key] = len(out)
		out = append(out, rule)
	}
	return out
}
