package migration_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/migration"
)

// refusing refuses a verb on an object.
func refusing(verb, name string, by *apierrors.StatusError) func(*server, string, string) *apierrors.StatusError {
	return func(_ *server, v, n string) *apierrors.StatusError {
		if v == verb && (name == n || name == "*") {
			return by
		}
		return nil
	}
}

// once does something at the first request of a verb for an object, before the server answers.
func once(verb, name string, do func(*server) *apierrors.StatusError) func(*server, string, string) *apierrors.StatusError {
	done := false
	return func(s *server, v, n string) *apierrors.StatusError {
		if done || v != verb || n != name {
			return nil
		}
		done = true
		return do(s)
	}
}

var (
	resource  = schema.GroupResource{Group: "example.com", Resource: "shops"}
	forbidden = apierrors.NewForbidden(resource, "", errors.New("no"))
	invalid   = apierrors.NewInvalid(schema.GroupKind{Kind: "Shop"}, "shop-0002", nil)
	conflict  = apierrors.NewConflict(resource, "shop-0002", errors.New("somebody writes"))
	internal  = apierrors.NewInternalError(errors.New("conversion webhook failed"))
)

func TestOldVersionsAreRemovedOnlyWhenEverythingWasStored(t *testing.T) {
	t.Parallel()
	old, migrated := []string{"v1alpha1", "v1"}, []string{"v1"}
	change := func(change func(*server)) func(*server) *apierrors.StatusError {
		return func(s *server) *apierrors.StatusError { change(s); s.touch(); return nil }
	}
	for name, tc := range map[string]struct {
		reason string
		n      int
		before func(*server, string, string) *apierrors.StatusError
		want   []string
		failed []string
		err    string
	}{
		"All":   {"several pages", 250, nil, migrated, nil, ""},
		"None":  {"nothing is stored", 0, nil, migrated, nil, ""},
		"Gone":  {"what is deleted meanwhile is stored nowhere", 5, once("patch", "shop-0002", func(s *server) *apierrors.StatusError { s.objects = slices.Delete(s.objects, 2, 3); return nil }), migrated, nil, ""},
		"Anew":  {"what is created meanwhile is stored in the new version", 5, once("patch", "shop-0002", func(s *server) *apierrors.StatusError { s.objects[2].uid = "other"; return nil }), migrated, nil, ""},
		"Busy":  {"somebody writes at the same time", 5, once("patch", "shop-0002", func(*server) *apierrors.StatusError { return conflict }), migrated, nil, ""},
		"Never": {"somebody writes all the time", 5, refusing("patch", "shop-0002", conflict), old, []string{"home/shop-0002"}, ""},
		"Wrong": {"one that cannot be stored is named, and the others are stored", 5, refusing("patch", "shop-0002", invalid), old, []string{"home/shop-0002"}, ""},
		"Right": {"who may not remove the versions writes nothing", 5, refusing("put definition", "status", forbidden), old, nil, "removing versions from status.storedVersions of " + shops},
		"Flips": {"objects may have been stored in the old version meanwhile", 5, once("patch", "shop-0002", change(func(s *server) { s.definition.Generation += 2 })), old, nil, "the definition has changed meanwhile"},
		"Other": {"it is another definition of the name", 5, once("patch", "shop-0002", change(func(s *server) { s.definition.UID = "other" })), old, nil, "the definition has changed meanwhile"},
		"More":  {"another version was stored meanwhile", 5, once("patch", "shop-0002", change(func(s *server) { s.definition.Status.StoredVersions = append(s.definition.Status.StoredVersions, "v2") })), append(old, "v2"), nil, "the definition has changed meanwhile"},
		"Two":   {"another migration was faster", 5, once("patch", "shop-0002", change(func(s *server) { s.definition.Status.StoredVersions = []string{"v1"} })), migrated, nil, ""},
		"Label": {"somebody else writes the definition", 5, once("patch", "shop-0002", change(func(*server) {})), migrated, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(tc.n)
			if tc.before != nil {
				s.before = tc.before
			}
			m, err := migration.Read(t.Context(), s.clients(t), shops)
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.Run(t.Context())
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s: the error is %v, want %q", tc.reason, err, tc.err)
			}
			var failed []string
			for _, f := range out.Failures {
				failed = append(failed, f.Object)
			}
			if diff := cmp.Diff(tc.failed, failed); diff != "" {
				t.Errorf("%s: failures (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, s.definition.Status.StoredVersions); diff != "" {
				t.Errorf("%s: stored versions (-want +got):\n%s", tc.reason, diff)
			}
			if tc.err == "" && len(s.stored)+len(out.Failures) < len(s.objects)-1 {
				t.Errorf("%s: %d of %d were stored", tc.reason, len(s.stored), len(s.objects))
			}
		})
	}
}

func TestAResourceThatCannotBeListedIsFoundBehindTheLastThatCan(t *testing.T) {
	t.Parallel()
	s := newServer(150)
	whole := true
	s.before = func(_ *server, verb, name string) *apierrors.StatusError {
		// The conversion of the resource with number 120 fails, and with it each page that has it.
		if verb != "list" || name != "120" && (name != "100" || !whole) {
			return nil
		}
		whole = false
		return internal
	}
	m, err := migration.Read(t.Context(), s.clients(t), shops)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "behind home/shop-0119: ") || !strings.Contains(err.Error(), "conversion webhook failed") {
		t.Errorf("the error is %v", err)
	}
	if out.Objects != 120 || !slices.Contains(s.definition.Status.StoredVersions, "v1alpha1") {
		t.Errorf("%d were stored, and the versions are %q", out.Objects, s.definition.Status.StoredVersions)
	}
}

func TestAListThatTakesTooLongGoesOnAsOftenAsItMay(t *testing.T) {
	t.Parallel()
	for name, expirations := range map[string]int{"Once": 1, "Always": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(250)
			left := expirations
			s.before = func(_ *server, verb, name string) *apierrors.StatusError {
				if verb != "list" || name == "" || left == 0 {
					return nil
				}
				left--
				expired := apierrors.NewResourceExpired("too old")
				expired.ErrStatus.Continue = name // as the API server gives a place in the present list
				return expired
			}
			m, err := migration.Read(t.Context(), s.clients(t), shops)
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.Run(t.Context())
			if finished := err == nil; finished != (expirations == 1) {
				t.Errorf("the error is %v after %d of 250", err, out.Objects)
			}
		})
	}
}

func TestManyFailuresEndAMigration(t *testing.T) {
	t.Parallel()
	s := newServer(1000)
	s.before = refusing("patch", "*", forbidden)
	m, err := migration.Read(t.Context(), s.clients(t), shops)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Run(t.Context())
	if err != nil || !out.Stopped || len(out.Failures) > 100 || len(s.pages) != 1 {
		t.Errorf("it is stopped: %v, after %d failures and %d pages, error %v", out.Stopped, len(out.Failures), len(s.pages), err)
	}
}

func TestACountWritesNothingInBoundedPages(t *testing.T) {
	t.Parallel()
	s := newServer(1050)
	m, err := migration.Read(t.Context(), s.clients(t), shops)
	if err != nil {
		t.Fatal(err)
	}
	n, err := m.Count(t.Context())
	if err != nil || n != 1050 || len(s.stored) > 0 || slices.Max(s.pages) > 100 {
		t.Errorf("%d objects, error %v, %d stored, pages of %v", n, err, len(s.stored), s.pages)
	}
}

func TestADefinitionWhoseObjectsWouldLoseSomethingIsRefused(t *testing.T) {
	t.Parallel()
	none := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	for name, tc := range map[string]struct {
		reason string
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   string
	}{
		"Webhook": {"somebody converts", func(*apiextensionsv1.CustomResourceDefinition) {}, ""},
		"Nobody":  {"the API server would drop the fields of the old version", func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Conversion = none }, "no webhook converts them to v1"},
		"Alike": {"nothing is there to convert", func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Conversion, d.Spec.Versions[0].Schema = none, d.Spec.Versions[1].Schema
		}, ""},
		"Empty":    {"it names no webhook", func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Conversion.Webhook = nil }, "its conversion has no webhook"},
		"Unserved": {"nobody can write", func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[1].Served = false }, "the storage version is not served"},
		"Missing":  {"nobody can read", func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions = d.Spec.Versions[1:] }, "objects may be stored in version v1alpha1, which it does not have"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(1)
			tc.change(s.definition)
			_, err := migration.Read(t.Context(), s.clients(t), shops)
			refused, is := errors.AsType[*migration.RefusedError](err)
			if is != (tc.want != "") || is && !strings.Contains(refused.Error(), tc.want) || !is && err != nil {
				t.Errorf("%s: the error is %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
	if _, err := migration.Read(t.Context(), newServer(0).clients(t), shops); err != nil {
		t.Error(err)
	}
}
