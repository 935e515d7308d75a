package render

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// view is a cluster in memory with the objects of an Input.
type view struct {
	world    *dryrun.World
	in       Input
	cr       *unstructured.Unstructured
	resource cluster.Ref
	owner    ownership.Owner
	// refs are the manifests that were put, in order, and byHand those of them that were written by
	// hand rather than read from a cluster.
	refs   []cluster.Ref
	byHand map[cluster.Ref]map[string]any
	// unknown describes the manifests of kinds that are not known.
	unknown []string
	// placed are the objects that were put as if the operator had applied them. The value says
	// whether the manifest was complete.
	placed map[cluster.Ref]bool
	// evaluates is the package.
	evaluates *recorder
}

// A recorder is a package that remembers with what it was evaluated last. It is for one goroutine, as a World
// is.
type recorder struct {
	*program.Program

	last program.Session
}

// Evaluate implements rollout.Evaluator.
func (r *recorder) Evaluate(s program.Session) (program.Rollout, error) {
	r.last = s
	return r.Program.Evaluate(s)
}

// configMap is where the operator's configuration is, in a namespace that no resource is in.
var configMap = types.NamespacedName{Namespace: "operetta-render", Name: "config"}

// configured returns the name of the operator's ConfigMap; its zero value is none.
func configured(in Input) types.NamespacedName {
	if in.Config == nil {
		return types.NamespacedName{}
	}
	return configMap
}

// configure puts the operator's configuration into the cluster, as an administrator writes it.
func (v *view) configure(p *program.Program, config map[string]any) error {
	if config == nil {
		return nil
	}
	text, err := json.Marshal(config) // JSON is YAML
	if err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	_, err = v.world.Put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": configMap.Namespace, "name": configMap.Name},
		"data":     map[string]any{p.Name() + ".yaml": string(text)},
	}})
	return err
}

// fill puts the objects of the Input into the cluster: definitions first, the custom resource last.
func (v *view) fill(p *program.Program) error {
	v.byHand = map[cluster.Ref]map[string]any{}
	v.cr = resourceIn(p, v.in)
	v.resource = cluster.Ref{GroupVersionKind: p.GroupVersionKind(), Namespace: v.cr.GetNamespace(), Name: v.cr.GetName()}
	manifests := slices.Clone(v.in.Manifests)
	slices.SortStableFunc(manifests, func(a, b map[string]any) int { return definesNothing(a) - definesNothing(b) })
	for _, m := range manifests {
		if err := v.put(m); err != nil {
			return err
		}
	}
	v.identify()
	put, err := v.world.Put(v.cr)
	if err != nil {
		return err
	}
	v.owner = ownership.Owner{Ref: cluster.Ref{GroupVersionKind: p.GroupVersionKind(), Namespace: put.GetNamespace(), Name: put.GetName()}, UID: put.GetUID()}
	return nil
}

// definesNothing is 0 for the definition of a kind and 1 for anything else.
func definesNothing(object map[string]any) int {
	if _, _, defines := cluster.DefinedBy(object); defines {
		return 0
	}
	return 1
}

// put puts a manifest into its namespace. One that was written by hand loses its finalizers, so that
// it can be replaced.
func (v *view) put(manifest map[string]any) error {
	u := (&unstructured.Unstructured{Object: manifest}).DeepCopy()
	if v.world.SetNamespace(u, v.cr.GetNamespace()) != nil {
		v.unknown = append(v.unknown, describe(u))
		return nil //nolint:nilerr // the output lists it
	}
	ref := cluster.RefOf(u)
	if ref.Identity() == v.resource.Identity() {
		return nil // a dump of a namespace contains the custom resource, too
	}
	if u.GetResourceVersion() == "" {
		v.byHand[ref.Identity()] = u.DeepCopy().Object
		u.SetFinalizers(nil)
	}
	setUID(u)
	if !slices.Contains(v.refs, ref) {
		v.refs = append(v.refs, ref)
	}
	_, err := v.world.Put(u)
	return err
}

// identify gives a custom resource without a UID the UID in the marks of its live objects, because
// it is the same resource with another spec.
func (v *view) identify() {
	if v.cr.GetUID() != "" {
		return
	}
	name := ownership.Owner{Ref: v.resource}.String()
	for _, m := range v.in.Manifests {
		annotations := (&unstructured.Unstructured{Object: m}).GetAnnotations()
		if uid := annotations[ownership.OwnerUIDAnnotation]; uid != "" && annotations[ownership.OwnerAnnotation] == name {
			v.cr.SetUID(types.UID(uid))
			return
		}
	}
}

// place puts the given objects as those that the package renders, and serves the kinds that the
// package defines. It reports whether that may change the preview.
func (v *view) place(d reconcile.Preview) (bool, error) {
	wanted := map[[2]string]rollout.ObjectPreview{}
	for _, c := range d.Components {
		for _, o := range c.Objects {
			wanted[[2]string{c.Name, o.Object}] = o
		}
	}
	again := false
	for _, c := range d.Rollout.Components {
		for _, o := range c.Objects {
			again = v.serve(o.Manifest) || again
			moved, err := v.placeOne(c.Name, o, wanted[[2]string{c.Name, o.Name}].Manifest)
			if err != nil {
				return false, err
			}
			again = again || moved
		}
	}
	return again, nil
}

// serve serves the kind that an object of the package defines, and reports whether it is new.
func (v *view) serve(manifest map[string]any) bool {
	kind, scope, defines := cluster.DefinedBy(manifest)
	if !defines {
		return false
	}
	if _, err := v.world.Scope(kind.WithVersion("")); err == nil {
		return false
	}
	v.world.Cluster.Serve(kind, scope)
	return true
}

// placeOne puts what was given for one object. While its manifest is incomplete, the object has only
// the given fields.
func (v *view) placeOne(component string, o program.Object, manifest *unstructured.Unstructured) (bool, error) {
	kind := o.Identity.GroupVersionKind
	scope, err := v.world.Scope(kind)
	if err != nil || !o.Identity.Known() {
		return false, nil //nolint:nilerr // the preview reports it
	}
	ref := ownership.RefOf(o, v.resource.Namespace, scope)
	given := v.in.Live[component][o.Name]
	if given == nil {
		given = v.byHand[ref.Identity()]
	}
	whole, before := v.placed[ref.Identity()]
	if given == nil || before && (whole || manifest == nil) {
		return false, nil
	}
	v.placed[ref.Identity()] = manifest != nil
	if manifest == nil {
		manifest = &unstructured.Unstructured{Object: map[string]any{}}
		manifest.SetGroupVersionKind(kind)
		manifest.SetNamespace(ref.Namespace)
		manifest.SetName(ref.Name)
		ownership.Mark(manifest, v.owner)
	}
	return true, v.replace(ref, manifest, given)
}

// replace puts an object as if it had been applied, with the given fields over that.
func (v *view) replace(ref cluster.Ref, manifest *unstructured.Unstructured, given map[string]any) error {
	fields, err := memory.AppliedFields(manifest)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: overlaid(manifest.DeepCopy().Object, given)}
	u.SetGroupVersionKind(ref.GroupVersionKind)
	u.SetNamespace(ref.Namespace)
	u.SetName(ref.Name)
	u.SetManagedFields(fields)
	setUID(u)
	if live := v.world.Get(ref); live != nil {
		if err := v.world.Cluster.DeleteInBackground(ref, live.GetUID()); err != nil {
			return err
		}
	}
	_, err = v.world.Put(u)
	return err
}

// setUID gives an object without a UID one, so that Put keeps it as it is: people write only the
// fields whose effect they want to see.
func setUID(u *unstructured.Unstructured) {
	if u.GetUID() == "" {
		u.SetUID(types.UID("uid-of-" + cluster.RefOf(u).String()))
	}
}

// overlaid returns one map with another over it: maps are merged, and other values replaced.
func overlaid(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for k, value := range over {
		below, isMap := value.(map[string]any)
		if was, both := out[k].(map[string]any); both && isMap {
			value = overlaid(was, below)
		}
		out[k] = value
	}
	return out
}

// inputRef returns the reference of an input, without a name if the input selects by labels.
func (v *view) inputRef(in program.Input) cluster.Ref {
	ref := cluster.Ref{GroupVersionKind: in.Kind, Namespace: in.Namespace, Name: in.Object}
	switch scope, err := v.world.Scope(in.Kind); {
	case err == nil && scope == cluster.ClusterScoped:
		ref.Namespace = ""
	case ref.Namespace == "":
		ref.Namespace = v.resource.Namespace
	}
	return ref
}

// read returns which of the manifests an input reads.
func (v *view) read(in program.Input) []cluster.Ref {
	if in.Missing != "" {
		return nil
	}
	ref := v.inputRef(in)
	if in.Object != "" {
		if v.world.Get(ref) == nil {
			return nil
		}
		return []cluster.Ref{ref.Identity()}
	}
	var out []cluster.Ref
	selected, _ := v.world.Cluster.ListLive(context.Background(), cluster.Selection{Kind: in.Kind, Namespace: ref.Namespace, Labels: in.Selector}) // it never errors
	for _, u := range selected {
		out = append(out, cluster.RefOf(u).Identity())
	}
	return out
}

// absent describes the inputs that were not found, except for those that only excluded components
// refer to.
func (v *view) absent(d reconcile.Preview) []string {
	var excluded []string
	for _, c := range d.Components {
		if c.State == status.Excluded {
			excluded = append(excluded, c.Name)
		}
	}
	var out []string
	for _, in := range d.Rollout.Inputs {
		switch {
		case in.UsedOnlyBy(excluded) || len(v.read(in)) > 0:
		case in.Missing != "":
			out = append(out, "inputs."+in.Name+": "+in.Missing)
		default:
			what := identity(v.inputRef(in))
			if in.Object == "" {
				what += labels.FormatLabels(in.Selector)
			}
			out = append(out, "inputs."+in.Name+": "+what+in.Position.InBrackets()+" was not found; give it with --live")
		}
	}
	return out
}

// unmatched describes the live objects that are neither rendered objects nor inputs.
func (v *view) unmatched(d reconcile.Preview) []string {
	matched := map[cluster.Ref]bool{}
	names := map[string]bool{}
	for _, c := range d.Rollout.Components {
		for _, o := range c.Objects {
			names[c.Name+"."+o.Name] = true
			if scope, err := v.world.Scope(o.Identity.GroupVersionKind); err == nil && o.Identity.Known() {
				matched[ownership.RefOf(o, v.resource.Namespace, scope).Identity()] = true
			}
		}
	}
	for _, in := range d.Rollout.Inputs {
		for _, ref := range v.read(in) {
			matched[ref] = true
		}
	}
	var out []string
	for _, component := range slices.Sorted(maps.Keys(v.in.Live)) {
		for _, name := range slices.Sorted(maps.Keys(v.in.Live[component])) {
			if path := component + "." + name; !names[path] {
				out = append(out, path)
			}
		}
	}
	for _, ref := range v.refs {
		u := v.world.Get(ref)
		if u == nil || matched[ref.Identity()] || definesNothing(u.Object) == 0 || ref.GroupKind() == patch.Kind.GroupKind() {
			continue
		}
		out = append(out, identity(ref))
	}
	return append(out, v.unknown...)
}

// identity returns a reference for messages, as in "Deployment.apps shop/web".
func identity(ref cluster.Ref) string {
	name := ref.Name
	if ref.Namespace != "" {
		name = ref.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s", ref.GroupKind(), name)
}

// describe returns an object of an unknown kind for messages.
func describe(u *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s of %q", u.GetKind(), u.GetName(), u.GetAPIVersion())
}
