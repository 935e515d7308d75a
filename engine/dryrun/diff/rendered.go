package diff

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// A Difference is a field that a package renders and that is another one in a live object: Before is the live
// value, and After the rendered one.
type Difference struct {
	Field

	// Managers are the field managers that own the live field.
	Managers []string
}

// States are the states of one object that Rendered compares. All are canonical but Wanted.
type States struct {
	// Live is the object, and Applied what it is once Wanted has been applied to it.
	Live, Applied *unstructured.Unstructured
	// Wanted is what a package renders. It says which fields are compared.
	Wanted *unstructured.Unstructured
	// Managers own the fields of Live.
	Managers ownership.Managers
}

// Rendered returns the fields that a package renders and that a live object has otherwise, in order. Fields that
// nobody renders count for nothing: the API server has set them as defaults, or others have. Items that an apply
// removes from a list that is rendered do count. It learns the values of a Secret first.
func (m *Mask) Rendered(s States) []Difference {
	m.Learn(s.Live, s.Applied, s.Wanted)
	r := &rendered{States: s, shown: &shownFields{mask: m, secret: mayBeSecret(s.Wanted)}}
	r.walk(place{}, relevantTo(s.Live), relevantTo(s.Applied), relevantTo(s.Wanted))
	return r.out
}

// WithoutOwnership returns a rendered object without what says whose it is: the marks of the engine and the references to
// owners.
func WithoutOwnership(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	out.SetOwnerReferences(nil)
	out.SetLabels(withoutMarks(out.GetLabels()))
	out.SetAnnotations(withoutMarks(out.GetAnnotations()))
	return out
}

// withoutMarks returns labels or annotations without those of the engine; nil if none is left.
func withoutMarks(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasPrefix(name, ownMarks) })
	if len(all) == 0 {
		return nil
	}
	return all
}

// relevantTo returns the part of an object that can be rendered and says nothing about its identity.
func relevantTo(u *unstructured.Unstructured) any {
	if u == nil {
		return nil
	}
	out := without(u, append([]string{"name", "namespace", "ownerReferences"}, serverMetadata...)...)
	delete(out, "status")
	return out
}

// rendered is a comparison of what is rendered with what is there.
type rendered struct {
	States

	shown *shownFields
	out   []Difference
}

// A place is where a comparison is: for people, and for the managed fields.
type place struct {
	text   path
	fields fieldpath.Path
}

func (p place) field(name string) place {
	return place{p.text.field(name), append(slices.Clip(p.fields), fieldpath.PathElement{FieldName: &name})}
}

func (p place) index(i int) place {
	return place{p.text.index(i), append(slices.Clip(p.fields), fieldpath.PathElement{Index: &i})}
}

// item is the item of a list whose key has a value.
func (p place) item(key string, of any) place {
	keys := value.FieldList{{Name: key, Value: value.NewValueInterface(of)}}
	return place{p.text.item(key, show(of), of), append(slices.Clip(p.fields), fieldpath.PathElement{Key: &keys})}
}

// walk compares what is wanted at a place and below it.
func (r *rendered) walk(at place, live, applied, wanted any) {
	switch wanted := wanted.(type) {
	case nil: // asks for the absence of a field, as in an apply
	case map[string]any:
		l, isMap := live.(map[string]any)
		a, _ := applied.(map[string]any)
		if live != nil && !isMap || live == nil && applied != nil && len(wanted) == 0 {
			r.add(at, live, applied)
			return
		}
		for _, k := range slices.Sorted(maps.Keys(wanted)) {
			r.walk(at.field(k), l[k], a[k], wanted[k])
		}
	case []any:
		r.list(at, live, applied, wanted)
	default:
		if applied == nil && live != nil { // a false, an empty text or a zero that is the same as none
			applied = wanted
		}
		r.leaf(at, live, applied)
	}
}

// leaf compares two values as a whole.
func (r *rendered) leaf(at place, live, applied any) {
	if !equality.Semantic.DeepEqual(live, applied) {
		r.add(at, live, applied)
	}
}

// list compares a list that is wanted.
func (r *rendered) list(at place, live, applied any, wanted []any) {
	l, isList := live.([]any)
	a, _ := applied.([]any)
	if live != nil && !isList || !structs(wanted) || !structs(l) || len(wanted) == 0 {
		if len(l)+len(a) > 0 || live != nil && !isList {
			r.leaf(at, live, applied)
		}
		return
	}
	key, keyed := keyOf(l, a, wanted)
	switch {
	case keyed:
		r.items(at, key, l, a, wanted)
	case len(a) != len(wanted): // items of others are between those that are wanted
		r.leaf(at, live, applied)
	default:
		for i := range wanted {
			r.walk(at.index(i), item(l, i), a[i], wanted[i])
		}
		for i := len(wanted); i < len(l); i++ {
			r.add(at.index(i), l[i], nil)
		}
	}
}

// items compares lists whose items have a key.
func (r *rendered) items(at place, key string, live, applied, wanted []any) {
	l, a, w := itemsBy(key, live), itemsBy(key, applied), itemsBy(key, wanted)
	unchanged := len(r.out)
	for _, entry := range wanted {
		of := keyIn(key, entry)
		r.walk(at.item(key, of), l[of], a[of], w[of])
	}
	var before, after []any
	for _, entry := range live {
		of := keyIn(key, entry)
		if a[of] == nil && w[of] == nil {
			r.add(at.item(key, of), entry, nil)
		}
		if a[of] != nil {
			before = append(before, of)
		}
	}
	for _, entry := range applied {
		if of := keyIn(key, entry); l[of] != nil {
			after = append(after, of)
		}
	}
	if len(r.out) == unchanged && !slices.Equal(before, after) {
		r.out = append(r.out, Difference{Field{r.shown.mask.Text(at.text.String()), "(an order)", "(another order)"}, r.Managers.Of(at.fields)})
	}
}

// itemsBy returns the items of a list by their key.
func itemsBy(key string, list []any) map[any]any {
	out := map[any]any{}
	for _, entry := range list {
		out[keyIn(key, entry)] = entry
	}
	return out
}

// keyIn returns the value of a key of an item.
func keyIn(key string, entry any) any {
	m, _ := entry.(map[string]any)
	return m[key]
}

// add adds one field.
func (r *rendered) add(at place, live, applied any) {
	d := Difference{Field: r.shown.field(at.text, live, applied)}
	if live != nil {
		d.Managers = r.Managers.Of(at.fields)
	}
	r.out = append(r.out, d)
}
