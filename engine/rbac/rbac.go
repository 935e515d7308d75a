package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/vet"
)

// Options say what the operator does besides serving its packages, and who it is.
type Options struct {
	// Namespaces are those that the operator serves.
	Namespaces object.Namespaces
	// OperatorNamespace is where the operator runs, and has its Lease. ServiceAccount is its name.
	OperatorNamespace string
	ServiceAccount    string
	// LeaderElectionID is the name of the Lease; "" is no leader election.
	LeaderElectionID string
	// Shards is how many processes share the custom resources; 0 is no shards. The permissions are the same.
	Shards int
	// InstallsCRDs says that the operator installs the CustomResourceDefinitions of its packages.
	InstallsCRDs bool
	// PackageObjects says that the operator serves Packages of the cluster. Which kinds these render is
	// not known beforehand, so the roles of each are beside these.
	PackageObjects bool
	// PullSecrets are the Secrets in OperatorNamespace with credentials for the registries of Packages.
	PullSecrets []string
	// SourceConfigMaps are the ConfigMaps that have the contents of Packages.
	SourceConfigMaps []types.NamespacedName
	// SecureMetrics says that the API server is asked who may read metrics, which nobody may ask it in one
	// namespace.
	SecureMetrics bool
	// ConfigMapNamespace and ConfigMap name the configuration of the operator; "" is none.
	ConfigMapNamespace, ConfigMap string
	// Shadow says that the operator only compares, as operetta run --shadow does: it reads, and writes nothing.
	Shadow bool
	// Impersonates are the ServiceAccounts as which the operator acts for its packages. They have what the packages take, and
	// the operator has the right to act as these, and no others.
	Impersonates []object.Account
}

// A Package is a package that the operator serves.
type Package struct {
	vet.Uses

	// Kind and Plural are those of its custom resource.
	Kind   schema.GroupKind
	Plural string
	// Account is as whom the operator acts for its resources, or none.
	Account object.Account
}

// Plurals are the plural names of kinds whose definitions are known.
type Plurals map[schema.GroupKind]string

// of returns the plural name of a kind. For a kind that is not known, it guesses.
func (p Plurals) of(kind schema.GroupKind) string {
	if known := p[kind]; known != "" {
		return known
	}
	guess, _ := meta.UnsafeGuessKindToResource(kind.WithVersion("v1"))
	return guess.Resource
}

// Known reports whether the plural name of a kind is known for certain.
func (p Plurals) Known(kind schema.GroupKind) bool {
	_, builtIn := cluster.KnownScope(kind)
	return builtIn || p[kind] != ""
}

// The verbs that the engine uses.
var (
	readVerbs = []string{"get", "list", "watch"}
	// ownVerbs are for custom resources of a package: patch is for finalizers, and for annotations that
	// the engine removes.
	ownVerbs = []string{"get", "list", "watch", "patch"}
	// writeVerbs are for objects of a package. Server-side apply is a patch, and a create if the object
	// does not exist.
	writeVerbs = []string{"get", "list", "watch", "create", "patch"}
)

// workloads are the kinds whose pods say why they are not ready.
var workloads = []schema.GroupKind{
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"},
	{Group: "apps", Kind: "ReplicaSet"}, {Group: "batch", Kind: "Job"},
}

// ofShadow returns the permissions to compare the resources of a package.
func (o Options) ofShadow(p Package, plurals Plurals) permissions {
	out := permissions{}
	for _, home := range o.homes(p) {
		out.allow(Permission{Namespace: home, Group: p.Kind.Group, Resource: p.Plural}, readVerbs...)
		for _, use := range p.Kinds {
			for _, namespace := range o.places(use, home) {
				out.allow(Permission{Namespace: namespace, Group: use.Group, Resource: plurals.of(use.GroupKind)}, readVerbs...)
			}
		}
	}
	return out.minimal()
}

// ofPackage returns the permissions that a package takes. An account has no other roles, so it also needs what the engine takes
// for the resources of any package.
func (o Options) ofPackage(p Package, plurals Plurals) permissions {
	if o.Shadow {
		return o.ofShadow(p, plurals)
	}
	out := permissions{}
	for _, home := range o.homes(p) {
		o.allowPackage(out, p, plurals, home)
	}
	if p.Account != (object.Account{}) {
		o.allowResources(out)
	}
	return out.minimal()
}

// allowPackage adds the permissions that a package takes for its resources in a namespace, or in all for "".
func (o Options) allowPackage(out permissions, p Package, plurals Plurals, home string) {
	own := Permission{Namespace: home, Group: p.Kind.Group, Resource: p.Plural}
	out.allow(own, ownVerbs...)
	own.Resource = p.Plural + "/status"
	out.allow(own, "patch")
	// The admission plugin OwnerReferencesPermissionEnforcement asks for it where an object names the
	// custom resource as its owner.
	own.Resource = p.Plural + "/finalizers"
	out.allow(own, "update")
	if p.HooksBeforeDelete && !p.ClusterScoped {
		// The hooks are skipped if the namespace is being deleted, which nothing else says as long as they write nothing.
		out.allow(Permission{Namespace: home, Resource: "namespaces", Name: home}, "get")
	}
	for _, use := range p.Kinds {
		for _, namespace := range o.places(use, home) {
			out.allowUse(use, Permission{Namespace: namespace, Group: use.Group, Resource: plurals.of(use.GroupKind)})
		}
	}
	for _, g := range p.Grants {
		out.allowRules(at(g.Place, home), g.Rules)
	}
}

// at returns the namespace of a place; "" is all.
func at(place vet.Place, home string) string {
	switch {
	case place.Everywhere, home == "":
		return ""
	case place.Namespace != "":
		return place.Namespace
	}
	return home
}

// homes are the namespaces of the custom resources of a package; "" is all.
func (o Options) homes(p Package) []string {
	if p.ClusterScoped {
		return []string{""}
	}
	return o.Namespaces.Lists()
}

// A bound is a ClusterRole that the operator is bound to in a namespace; "" is all.
type bound struct{ namespace, role string }

// bounds returns the ClusterRoles that the operator is bound to because a package binds them.
func (o Options) bounds(p Package) []bound {
	if o.Shadow {
		return nil
	}
	var out []bound
	for _, home := range o.homes(p) {
		for _, b := range p.Binds {
			if one := (bound{at(b.Place, home), b.Role}); !slices.Contains(out, one) {
				out = append(out, one)
			}
		}
	}
	return out
}

// allowUse adds the permissions that a kind takes at a place.
func (s permissions) allowUse(use vet.Use, at Permission) {
	if !use.Writes {
		s.allow(at, readVerbs...)
		return
	}
	s.allow(at, writeVerbs...)
	if use.Replaces {
		s.allow(at, "update")
	}
	if use.Deletes {
		s.allow(at, "delete")
	}
	if slices.Contains(workloads, use.GroupKind) {
		s.allow(Permission{Namespace: at.Namespace, Resource: "pods"}, "list")
		s.allow(Permission{Namespace: at.Namespace, Resource: "persistentvolumeclaims"}, "get")
	}
}

// places returns the namespaces in which the operator uses a kind; "" is all of them. An operator of some
// namespaces uses a kind elsewhere only as far as the package reaches.
func (o Options) places(use vet.Use, home string) []string {
	if home == "" || use.Scope == cluster.ClusterScoped || slices.ContainsFunc(use.Elsewhere, vet.IsPattern) {
		return []string{""}
	}
	return append([]string{home}, use.Elsewhere...)
}

// ofEngine returns the permissions that the engine takes whatever packages it serves. crds are the names
// of the CustomResourceDefinitions that it installs.
func (o Options) ofEngine(crds []string) permissions {
	out := permissions{}
	o.allowReads(out)
	if o.Shadow {
		return out.minimal()
	}
	o.allowResources(out)
	for _, a := range o.Impersonates {
		out.allow(Permission{Namespace: a.Namespace, Resource: "serviceaccounts", Name: a.Name}, "impersonate")
	}
	definitions := Permission{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	out.allow(definitions, "get", "list")
	if o.InstallsCRDs {
		for _, name := range crds {
			definitions.Name = name
			out.allow(definitions, "create", "patch")
		}
	}
	if o.PackageObjects {
		out.allow(Permission{Group: "operetta.dev", Resource: "packages"}, "get", "list", "watch", "patch")
		out.allow(Permission{Group: "operetta.dev", Resource: "packages/status"}, "patch")
		out.allow(Permission{Group: "operetta.dev", Resource: "overlays"}, "get", "list", "watch")
		out.allow(Permission{Group: "operetta.dev", Resource: "packagerevisions"}, "get", "list", "create", "patch", "delete")
		// A Package has no namespace, and an event about it is in this one.
		out.allow(Permission{Namespace: metav1.NamespaceDefault, Group: "events.k8s.io", Resource: "events"}, "create", "patch")
		if o.InstallsCRDs {
			definitions.Name = "" // those of Packages that are not there yet
			out.allow(definitions, "create", "patch")
		}
	}
	for _, c := range o.SourceConfigMaps {
		out.allow(Permission{Namespace: c.Namespace, Resource: "configmaps", Name: c.Name}, readVerbs...) // each is watched by its name
	}
	for _, name := range o.PullSecrets {
		out.allow(Permission{Namespace: o.OperatorNamespace, Resource: "secrets", Name: name}, "get")
	}
	if o.SecureMetrics {
		out.allow(Permission{Group: "authentication.k8s.io", Resource: "tokenreviews"}, "create")
		out.allow(Permission{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}, "create")
	}
	if o.LeaderElectionID != "" {
		lease := Permission{Namespace: o.OperatorNamespace, Group: "coordination.k8s.io", Resource: "leases"}
		out.allow(lease, "create") // the request that creates an object has no name to be compared
		// Also without shards: whoever changes their number takes the Leases of those that were there before.
		for _, lease.Name = range append(object.ShardLeases(o.LeaderElectionID), object.SharedLease(o.LeaderElectionID)) {
			out.allow(lease, "get", "update")
		}
		// The library records the leader as an event of the core group beside its Lease.
		out.allow(Permission{Namespace: o.OperatorNamespace, Resource: "events"}, "create", "patch")
	}
	return out.minimal()
}

// allowResources adds the permissions that the engine takes for the resources of any package.
func (o Options) allowResources(out permissions) {
	o.allowReads(out)
	for _, namespace := range o.Namespaces.Lists() {
		out.allow(Permission{Namespace: namespace, Group: "operetta.dev", Resource: "patches/status"}, "patch")
		out.allow(Permission{Namespace: namespace, Group: "events.k8s.io", Resource: "events"}, "create", "patch")
	}
}

// allowReads adds the permissions that the engine takes to read what it needs besides resources and their objects.
func (o Options) allowReads(out permissions) {
	for _, namespace := range o.Namespaces.Lists() {
		out.allow(Permission{Namespace: namespace, Group: "operetta.dev", Resource: "patches"}, "list", "watch")
	}
	if o.ConfigMap != "" {
		// A watch of one object asks for list and watch with its name.
		out.allow(Permission{Namespace: o.ConfigMapNamespace, Resource: "configmaps", Name: o.ConfigMap}, readVerbs...)
	}
}

// Roles returns the roles that an operator of some packages needs, and the bindings of these. crds are the
// names of the CustomResourceDefinitions that the operator installs.
func Roles(packages []Package, plurals Plurals, crds []string, o Options) []any {
	out := o.objects(o.roleName(), o.ofEngine(crds), nil)
	for _, p := range packages {
		by := o.as(p.Account)
		name := by.roleName(schema.GroupResource{Group: p.Kind.Group, Resource: p.Plural}.String())
		out = append(out, by.objects(name, o.ofPackage(p, plurals), o.bounds(p))...)
	}
	return out
}

// as returns the options whose roles are those of an account; "" is the operator.
func (o Options) as(a object.Account) Options {
	if a != (object.Account{}) {
		o.OperatorNamespace, o.ServiceAccount = a.Namespace, a.Name
	}
	return o
}

// Permissions returns all permissions of some packages and of the engine, in order. Two lists of them can
// be compared. A ClusterRole that a package binds has its name after the verb bind, which no role has.
func Permissions(packages []Package, plurals Plurals, crds []string, o Options) []Permission {
	all := o.ofEngine(crds)
	for _, p := range packages {
		for one := range o.ofPackage(p, plurals) {
			all[one] = true
		}
		for _, b := range o.bounds(p) {
			all[Permission{Namespace: b.namespace, Group: rbacv1.GroupName, Resource: "clusterroles", Name: b.role, Verb: heldVerb}] = true
		}
	}
	return all.minimal().sorted()
}

// heldVerb stands for all permissions of a ClusterRole, which the operator has by a binding of its own.
const heldVerb = "(everything that is allowed by)"

// objects returns the roles with some permissions, one for each place, and their bindings.
func (o Options) objects(name string, all permissions, binds []bound) []any {
	var out []any
	var places []string
	for _, p := range all.sorted() {
		places = append(places, p.Namespace)
	}
	for _, place := range slices.Compact(places) {
		out = append(out, role(name, place, all.rules(place)), o.binding(name, place, roleKind(place), name))
	}
	for _, b := range binds {
		out = append(out, o.binding(name+":"+b.role, b.namespace, clusterRole, b.role))
	}
	return out
}

const clusterRole = "ClusterRole"

// roleKind returns the kind of a role for a namespace, or for all.
func roleKind(namespace string) string {
	if namespace == "" {
		return clusterRole
	}
	return "Role"
}

// Labels are the labels of all objects of an installation.
var Labels = map[string]string{"app.kubernetes.io/name": "operetta"}

// roleName returns the name of a role. It names the service account and the namespaces that are served, so
// that no operator replaces the roles of another one. A colon separates the parts, because the other signs
// that a name may have can be in any part.
func (o Options) roleName(of ...string) string {
	parts := []string{"operetta", o.OperatorNamespace, o.ServiceAccount}
	if !o.Namespaces.All() {
		parts = append(parts, o.Namespaces.Name())
	}
	if o.Shadow {
		parts = append(parts, "shadow")
	}
	return strings.Join(append(parts, of...), ":")
}

// role returns a role of one namespace, or of the cluster.
func role(name, place string, rules []rbacv1.PolicyRule) any {
	about := metav1.ObjectMeta{Name: name, Namespace: place, Labels: Labels}
	kind := metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: roleKind(place)}
	if place == "" {
		return &rbacv1.ClusterRole{TypeMeta: kind, ObjectMeta: about, Rules: rules}
	}
	return &rbacv1.Role{TypeMeta: kind, ObjectMeta: about, Rules: rules}
}

// binding returns the binding of a role to the operator.
func (o Options) binding(name, place, kind, role string) any {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: o.ServiceAccount, Namespace: o.OperatorNamespace}}
	about := metav1.ObjectMeta{Name: name, Namespace: place, Labels: Labels}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	version := rbacv1.SchemeGroupVersion.String()
	if place == "" {
		return &rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"}, ObjectMeta: about, RoleRef: ref, Subjects: subjects}
	}
	return &rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "RoleBinding"}, ObjectMeta: about, RoleRef: ref, Subjects: subjects}
}
