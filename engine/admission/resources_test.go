package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/admission"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
)

// shop is the package of these tests. What it says of a size is in the schema, and of a name in what it
// renders.
const shop = `package shop

import (
	"strings"
	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _
config: limit: *5 | int
#Spec: {size: int & >=1 & <=5 | *2, least: int | *size, name?: string, shelf?: [...{width: int | *1}]}
components: web: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: {
	if cr.spec.name != _|_ {name: strings.MaxRunes(8) & cr.spec.name}
}}
admission: {
	warnings: {if cr.spec.size == 1 {small: "size 1 is small"}}
	labels: "shop.example/size": "\(cr.spec.size)"
}
`

// A reviewer is a package that counts how often it reviews.
type reviewer struct {
	*program.Program

	config []program.Layer
	err    error
	// unconverted is the error of every conversion.
	unconverted error
	reviews     int
	// nested is what a plan does.
	nested func(context.Context) error
}

func (r *reviewer) Session(_ context.Context, u *unstructured.Unstructured) (program.Session, error) {
	if u.GetAnnotations()["config"] == "unreadable" {
		return program.Session{}, fault.Faults{{Path: "metadata.annotations[config]", Message: "is no YAML"}}
	}
	s := program.Session{CR: u.Object, Config: r.config}
	if text := u.GetAnnotations()["config"]; text != "" {
		s.Config = append(s.Config, program.Layer{Origin: "annotation", Tenant: true, Values: map[string]any{"limit": text}})
	}
	return s, nil
}

func (r *reviewer) Plan(ctx context.Context, _, u *unstructured.Unstructured) ([]string, error) {
	if u.GetUID() == "" {
		return nil, errors.New("a resource without a uid owns nothing")
	}
	if r.nested != nil {
		return nil, r.nested(ctx)
	}
	return []string{"recreates Deployment web"}, nil
}

func (r *reviewer) Converts() []string { return r.Meta().Converted() }

func (r *reviewer) ConvertContext(_ context.Context, of program.Conversion) (map[string]any, error) {
	if r.unconverted != nil {
		return nil, r.unconverted
	}
	return r.Conversions().ConvertResource(of)
}

func (r *reviewer) Review(_ context.Context, s program.Session) (program.Review, error) {
	r.reviews++
	if r.err != nil {
		return program.Review{}, r.err
	}
	return r.Program.Review(s)
}

// resources returns what reviews the requests of these tests.
func resources(r *reviewer) *admission.Resources {
	return admission.NewResources(func(kind schema.GroupKind) admission.Package {
		if kind.Kind != "Shop" {
			return nil
		}
		return r
	}, 1)
}

// request is a request that creates a resource, or changes it if there is one before.
func request(t *testing.T, before, after string) *admissionv1.AdmissionRequest {
	t.Helper()
	out := &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Group: "shop.example", Version: "v1", Kind: "Shop"}, Namespace: "town",
		Operation: admissionv1.Create, UserInfo: authenticationv1.UserInfo{Username: "alice"}, Object: raw(object(t, after)),
	}
	if before != "" {
		out.Operation, out.OldObject = admissionv1.Update, raw(object(t, before))
	}
	return out
}

// object returns a resource as JSON, of YAML with its spec, and perhaps its metadata.
func object(t *testing.T, text string) string {
	t.Helper()
	u := map[string]any{"apiVersion": "shop.example/v1", "kind": "Shop", "metadata": map[string]any{"name": "corner"}}
	var more map[string]any
	inline.Decode(t, text, &more)
	if meta, has := more["metadata"].(map[string]any); has {
		if _, named := meta["generateName"]; !named {
			meta["name"] = "corner"
		}
	}
	maps.Copy(u, more)
	out, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestARequestIsValidIfTheResourceCanBeRendered(t *testing.T) {
	t.Parallel()
	deleting := `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {size: 9}}`
	for name, tc := range map[string]struct {
		reason        string
		before, after string
		err           error
		config        []program.Layer
		edit          func(*admissionv1.AdmissionRequest)
		// causes are the fields that are refused, and says is in the message.
		causes   []string
		says     string
		warnings []string
		// fails says that nobody can say whether the request is right.
		fails   bool
		reviews int
	}{
		"Valid":           {reason: "nothing is wrong", after: `{spec: {}}`, reviews: 1},
		"NoSpec":          {reason: "every field has a default", after: `{}`, reviews: 1},
		"Bound":           {reason: "the message has the path and the bound", after: `{spec: {size: 9}}`, causes: []string{"FieldValueInvalid spec.size"}, says: "<=5", reviews: 1},
		"Several":         {reason: "all faults are named at once", after: `{spec: {size: 9, least: x}}`, causes: []string{"FieldValueInvalid spec.least", "FieldValueInvalid spec.size"}, reviews: 1},
		"Unknown":         {reason: "a misspelled field is wrong", after: `{spec: {sise: 1}}`, causes: []string{"FieldValueInvalid spec.sise"}, says: "size", reviews: 1},
		"Rendering":       {reason: "what no object can have is refused before it is stored", after: `{spec: {name: "far too long"}}`, causes: []string{"FieldValueInvalid components.web.objects.map.data.name"}, says: "shop/shop.cue:", reviews: 1},
		"Warning":         {reason: "the warnings of the package are shown", after: `{spec: {size: 1}}`, warnings: []string{"size 1 is small"}, reviews: 1},
		"GeneratedName":   {reason: "a name may be made later", after: `{metadata: {generateName: "shop-"}, spec: {}}`, reviews: 1},
		"Changed":         {reason: "a change is reviewed", before: `{spec: {size: 1}}`, after: `{spec: {size: 9}}`, causes: []string{"FieldValueInvalid spec.size"}, reviews: 2},
		"Unseen":          {reason: "what the package does not see cannot be wrong", before: `{spec: {size: 9}}`, after: `{metadata: {finalizers: [a/b], labels: {a: b}, generation: 2}, spec: {size: 9}}`},
		"Deleting":        {reason: "finalizers are removed from what is being deleted, whatever it is", before: deleting, after: deleting},
		"Ratchet":         {reason: "what was wrong before may stay so", before: `{spec: {size: 9}}`, after: `{spec: {size: 9, name: a}}`, warnings: []string{"it was invalid before, and still is: spec.size: invalid value 9 (out of bound <=5)"}, reviews: 2},
		"RatchetedAndNew": {reason: "only what is new is refused", before: `{spec: {size: 9}}`, after: `{spec: {size: 9, least: x}}`, causes: []string{"FieldValueInvalid spec.least"}, warnings: []string{"it was invalid before, and still is: spec.size: invalid value 9 (out of bound <=5)"}, reviews: 2},
		"Worse":           {reason: "another wrong value is new", before: `{spec: {size: 9}}`, after: `{spec: {size: 10}}`, causes: []string{"FieldValueInvalid spec.size"}, reviews: 2},
		"Limit":           {reason: "what is too expensive is refused", after: `{spec: {}}`, err: &program.LimitError{Evaluated: true, Text: "it takes too long"}, causes: []string{"FieldValueInvalid spec"}, says: "too long", reviews: 1},
		"Undecided":       {reason: "which components there are may rest on what is not there yet", after: `{spec: {}}`, err: &program.UndecidedError{Package: "shop", Faults: fault.Faults{{Message: "x"}}}, reviews: 1},
		"Unavailable":     {reason: "it is not the fault of the request", after: `{spec: {}}`, err: &program.UnavailableError{Err: errors.New("no worker")}, fails: true, reviews: 1},
		"Panic":           {reason: "it may be the fault of the engine", after: `{spec: {}}`, err: &program.PanicError{Package: "shop", Cause: "x"}, fails: true, reviews: 1},
		"Administrator":   {reason: "users cannot repair the configuration", after: `{spec: {}}`, config: []program.Layer{{Origin: "ConfigMap", Values: map[string]any{"limit": "text"}}}, fails: true, reviews: 1},
		"Annotation":      {reason: "the annotation is the user's", after: `{metadata: {annotations: {config: text}}}`, causes: []string{"FieldValueInvalid config.limit"}, reviews: 1},
		"Unreadable":      {reason: "the annotation is the user's", after: `{metadata: {annotations: {config: unreadable}}}`, causes: []string{"FieldValueInvalid metadata.annotations[config]"}},
		"Status":          {reason: "the status is not the user's", before: `{spec: {}}`, after: `{spec: {size: 9}}`, edit: func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" }},
		"Delete":          {reason: "nothing is changed", after: `{spec: {size: 9}}`, edit: func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete }},
		"OtherKind":       {reason: "its package may serve elsewhere", after: `{spec: {}}`, edit: func(r *admissionv1.AdmissionRequest) { r.Kind.Kind = "Other" }, fails: true},
		"Forged":          {reason: "the request is about something else than it has", after: `{kind: Other, spec: {}}`, fails: true},
		"NoObject":        {reason: "there is nothing to review", after: `{}`, edit: func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`7`) }, fails: true},
		"NoOldObject":     {reason: "there is nothing to compare with", before: `{}`, after: `{}`, edit: func(r *admissionv1.AdmissionRequest) { r.OldObject.Raw = nil }, fails: true},
		"NoMetadata":      {reason: "an API server does not send it, and somebody else may", after: `{metadata: 7, spec: {}}`, reviews: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &reviewer{Program: inline.Program(t, shop), config: tc.config, err: tc.err}
			req := request(t, tc.before, tc.after)
			if tc.edit != nil {
				tc.edit(req)
			}
			got, err := resources(r).Validate(t.Context(), req)
			if (err != nil) != tc.fails {
				t.Fatalf("%s: got %+v, %v", tc.reason, got, err)
			}
			if r.reviews != tc.reviews {
				t.Errorf("%s: %d reviews, want %d", tc.reason, r.reviews, tc.reviews)
			}
			if tc.fails {
				return
			}
			if got.Allowed != (len(tc.causes) == 0) {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			if diff := cmp.Diff(tc.warnings, got.Warnings); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", tc.reason, diff)
			}
			if got.Allowed {
				return
			}
			var causes []string
			for _, c := range got.Result.Details.Causes {
				causes = append(causes, string(c.Type)+" "+c.Field)
			}
			if diff := cmp.Diff(tc.causes, causes); diff != "" || got.Result.Code != 422 || got.Result.Reason != metav1.StatusReasonInvalid || !strings.Contains(got.Result.Message, tc.says) {
				t.Errorf("%s: got %d %s %s\ncauses (-want +got):\n%s", tc.reason, got.Result.Code, got.Result.Reason, got.Result.Message, diff)
			}
		})
	}
}

func TestARefusalDoesNotShowWhatIsKeptInASecret(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, strings.Replace(shop, "name?: string", `name?: =~"^[a-z]*$"`, 1)+`
components: secret: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: {if cr.spec.name != _|_ {word: cr.spec.name}}}`)
	got, err := resources(&reviewer{Program: p}).Validate(t.Context(), request(t, "", `{spec: {name: "Opensesame!"}}`))
	if err != nil || got.Allowed {
		t.Fatalf("got %+v, %v", got, err)
	}
	if text, _ := json.Marshal(got); strings.Contains(string(text), "Opensesame") || !strings.Contains(string(text), "spec.name") {
		t.Errorf("got %s", text)
	}
}

func TestDefaultsAndLabelsAreAddedOnce(t *testing.T) {
	t.Parallel()
	const again = `
#Spec: {size: _, ...}
admission: labels: "shop.example/count": [if cr.metadata.labels."shop.example/count" != _|_ {"\(cr.metadata.labels."shop.example/count")x"}, "x"][0]`
	for name, tc := range map[string]struct {
		reason        string
		body          string
		before, after string
		err           error
		want          string
		warnings      []string
		fails         bool
	}{
		"Empty":      {reason: "a resource without a spec gets all of it", after: `{}`, want: `[{"op":"add","path":"/spec","value":{"least":2,"size":2}},{"op":"add","path":"/metadata/labels","value":{}},{"op":"add","path":"/metadata/labels/shop.example~1size","value":"2"}]`},
		"Rest":       {reason: "what is there stays, and decides the rest", after: `{spec: {size: 4}}`, want: `[{"op":"add","path":"/spec/least","value":4},{"op":"add","path":"/metadata/labels","value":{}},{"op":"add","path":"/metadata/labels/shop.example~1size","value":"4"}]`},
		"Elements":   {reason: "elements of a list have defaults, too", after: `{metadata: {labels: {"shop.example/size": "2"}}, spec: {size: 2, least: 2, shelf: [{}, {width: 3}]}}`, want: `[{"op":"add","path":"/spec/shelf/0/width","value":1}]`},
		"Complete":   {reason: "nothing is added twice", after: `{metadata: {labels: {"shop.example/size": "2"}}, spec: {size: 2, least: 2}}`},
		"OtherLabel": {reason: "the label is computed, whatever the user says", after: `{metadata: {labels: {"shop.example/size": "9"}}, spec: {size: 2, least: 2}}`, want: `[{"op":"add","path":"/metadata/labels/shop.example~1size","value":"2"}]`},
		"Invalid":    {reason: "it is refused by the other webhook", after: `{spec: {size: 9}}`},
		"Unreadable": {reason: "it is refused by the other webhook", after: `{metadata: {annotations: {config: unreadable}}}`},
		"Unseen":     {reason: "the package sees no difference", before: `{spec: {size: 4}}`, after: `{metadata: {finalizers: [a/b]}, spec: {size: 4}}`},
		"Changed":    {reason: "a label follows the spec", before: `{spec: {size: 4, least: 1}}`, after: `{metadata: {labels: {"shop.example/size": "4"}}, spec: {size: 5, least: 1}}`, want: `[{"op":"add","path":"/metadata/labels/shop.example~1size","value":"5"}]`},
		"Unstable":   {reason: "a webhook may be called twice", body: again, after: `{}`, warnings: []string{"the package computes other labels or defaults each time, so none is set"}},
		"Expensive":  {reason: "it is refused by the other webhook", after: `{}`, err: &program.LimitError{Evaluated: true, Text: "too long"}},
		"Late":       {reason: "nobody knows what to add", after: `{}`, err: &program.UnavailableError{Err: errors.New("no worker")}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := resources(&reviewer{Program: inline.Program(t, shop+tc.body), err: tc.err})
			got, err := r.Mutate(t.Context(), request(t, tc.before, tc.after))
			if (err != nil) != tc.fails {
				t.Fatalf("%s: got %+v, %v", tc.reason, got, err)
			}
			if tc.fails {
				return
			}
			if diff := cmp.Diff(tc.want, string(got.Patch)); diff != "" || !got.Allowed {
				t.Errorf("%s: allowed: %t, patch (-want +got):\n%s", tc.reason, got.Allowed, diff)
			}
			if diff := cmp.Diff(tc.warnings, got.Warnings); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestADryRunSaysWhatAReconcileWouldDo(t *testing.T) {
	t.Parallel()
	dry := func(t *testing.T, spec string) *admissionv1.AdmissionRequest {
		t.Helper()
		out := request(t, "", spec)
		out.DryRun = new(true)
		return out
	}
	validate := func(t *testing.T, r *admission.Resources, req *admissionv1.AdmissionRequest) []string {
		t.Helper()
		got, err := r.Validate(t.Context(), req)
		if err != nil || !got.Allowed {
			t.Fatalf("got %+v, %v", got, err)
		}
		return got.Warnings
	}
	p := inline.Program(t, shop)
	for name, tc := range map[string]struct {
		reason string
		nested func(context.Context) error
		want   []string
	}{
		"Plan":    {"the user learns what is lost", nil, []string{"size 1 is small", "recreates Deployment web"}},
		"Failure": {"a plan that fails refuses nothing", func(context.Context) error { return errors.New("forbidden") }, []string{"size 1 is small", "what else it would do is not known: forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := resources(&reviewer{Program: p, nested: tc.nested})
			if diff := cmp.Diff(tc.want, validate(t, r, dry(t, `{spec: {size: 1}}`))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := validate(t, r, request(t, "", `{spec: {size: 2}}`)); len(got) > 0 {
				t.Errorf("a request that is none gets %q", got)
			}
		})
	}
	t.Run("Nested", func(t *testing.T) {
		t.Parallel()
		// A plan applies resources of the same package as dry runs, and theirs do so as well: each is reviewed
		// although there is one turn, and the plans end.
		v := &reviewer{Program: p}
		r := resources(v)
		depth := 0
		v.nested = func(context.Context) error {
			if depth++; depth > 3 {
				return errors.New("the plans do not end")
			}
			validate(t, r, dry(t, `{}`))
			return nil
		}
		if got := validate(t, r, dry(t, `{}`)); len(got) > 0 || depth != 2 {
			t.Errorf("got %q at a depth of %d", got, depth)
		}
	})
}
