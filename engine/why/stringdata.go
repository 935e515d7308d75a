package why

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/fieldpath"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// The content of a Secret has two names: a package may write stringData, and a cluster has it as data. The engine
// applies data, as an API server would make of it, and that is what managers own.
const dataField, textField = "data", "stringData"

// storedAs is the note on a field of data that the package writes as text.
const storedAs = "the cluster stores stringData in data, in base64"

// isSecret reports whether the question is about a Secret.
func (a *asking) isSecret() bool {
	return object.IsSecret(a.of.object.Identity.GroupKind())
}

// begins reports whether the path of the question is in a field of the object.
func (a *asking) begins(field string) bool { return len(a.path) > 0 && a.path[0].Name() == field }

// under returns the path of the question with another first field.
func (a *asking) under(field string) []fieldpath.Part {
	out := slices.Clone(a.path)
	out[0] = fieldpath.Part{Field: field}
	return out
}

// stored returns the object that the package renders as a cluster stores it, and where it has the field.
func (a *asking) stored() (map[string]any, []fieldpath.Part) {
	if !a.isSecret() {
		return a.of.object.Manifest, a.path
	}
	at := a.path
	if a.begins(textField) {
		at = a.under(dataField)
	}
	if a.of.object.Manifest == nil {
		return nil, at // it cannot be rendered yet
	}
	u := (&unstructured.Unstructured{Object: a.of.object.Manifest}).DeepCopy()
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(object.SecretKind))
	ownership.FoldStringData(u)
	return u.Object, at
}

// origins returns where the package writes the field. Of data, that is also where it writes it as text, which wins if
// a key is in both. asText says that it does.
func (a *asking) origins() (out program.Origins, asText bool, err error) {
	of := func(path []fieldpath.Part) (program.Origins, error) {
		return a.program.Origins(a.out.Evaluated, a.out.Rollout, a.of.component.Name, a.of.object.Name, path)
	}
	out, err = of(a.path)
	if err != nil || !a.isSecret() || !a.begins(dataField) {
		return out, false, err
	}
	text, err := of(a.under(textField))
	switch {
	case err != nil:
		return out, false, err
	case text.Exists() && (len(a.path) > 1 || !out.Exists()):
		return text, true, nil
	case text.Exists():
		return both(out, text), true, nil
	case !out.Exists() && text.Found > out.Found:
		return text, false, nil // it knows names that are near
	}
	return out, false, nil
}

// both returns the origins of a value that is written in two fields.
func both(a, b program.Origins) program.Origins {
	for _, at := range b.Places {
		if !slices.Contains(a.Places, at) {
			a.Places = append(a.Places, at)
		}
	}
	for _, s := range b.Sources {
		if !slices.ContainsFunc(a.Sources, func(o program.Source) bool { return slices.Equal(o.Path, s.Path) && o.Object == s.Object }) {
			a.Sources = append(a.Sources, s)
		}
	}
	a.Cut, a.Secret = a.Cut || b.Cut, a.Secret || b.Secret
	return a
}
