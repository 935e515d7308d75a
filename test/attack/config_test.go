package attack

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// platform is a package whose administrator chooses image and account, and whose hook
// before deletion the platform relies on.
const platform = `
#Spec: {}

config: {
	image:   string | *"server:1" @config(admin)
	account: string | *"default" @config(admin)
	colour:  string | *"red"
}
components: server: {
	objects: pod: {
		apiVersion: "apps/v1"
		kind:       "Deployment"
		metadata: name: cr.metadata.name
		spec: {
			selector: matchLabels: app: cr.metadata.name
			template: {
				metadata: {labels: app: cr.metadata.name, annotations: colour: config.colour}
				spec: {serviceAccountName: config.account, containers: [{name: "server", image: config.image}]}
			}
		}
	}
	policy: pod: verify: "exists"
}
hooks: beforeDelete: backup: objects: job: {
	apiVersion: "batch/v1"
	kind:       "Job"
	metadata: name: "backup-\(cr.metadata.name)"
	// It takes as long as there is no such node.
	spec: template: spec: {restartPolicy: "Never", nodeSelector: nowhere: "yes", containers: [{name: "backup", image: config.image}]}
}
`

// runs returns what a Deployment of a site runs, and as whom.
func runs(s *harness.Site, name string) [3]any {
	u := s.Get("Deployment", name)
	pod := []string{"spec", "template", "spec"}
	containers, _ := harness.Field(u, append(pod, "containers")...).([]any)
	image := containers[0].(map[string]any)["image"]
	return [3]any{image, harness.Field(u, append(pod, "serviceAccountName")...), harness.Field(u, "spec", "template", "metadata", "annotations", "colour")}
}

func TestAttackOnTheAdministratorsConfigurationByAnnotation(t *testing.T) {
	t.Parallel()
	s := harness.NewSite(t)
	p := harness.NewSmall(t, "platform", platform)
	s.Create(s.ConfigMap("settings", map[string]any{"platform.yaml": "image: server:2\naccount: server-sa"}))
	s.Operate(p.Dir, harness.Alone, "--config-map", s.Namespace+"/settings")
	mallory := s.Tenant("mallory", s.Namespace, things(p))

	cr := p.Thing(s, "shop", map[string]any{})
	mallory.Create(cr)
	s.ExpectAllReady(cr)
	want := [3]any{"server:2", "server-sa", "red"}
	if got := runs(s, "shop"); got != want {
		t.Fatalf("it runs %v, want %v", got, want)
	}
	for _, text := range []string{"image: evil:1", "account: admin-sa", "{image: evil:1, account: admin-sa, colour: blue}", "image: null"} {
		if err := mallory.Patch(cr, harness.Annotation("operetta.dev/config", text)); err != nil {
			t.Fatal(err)
		}
		t.Log(s.ExpectNotReady(cr, "InvalidConfig", "only the administrator sets this", "annotation operetta.dev/config", "platform.cue:"))
		if got := runs(s, "shop"); got != want {
			t.Errorf("%s: it runs %v, want %v", text, got, want)
		}
	}
	// Made with the annotation from the start, it never comes to be.
	born := p.Thing(s, "born", map[string]any{})
	born.SetAnnotations(map[string]string{"operetta.dev/config": "image: evil:1"})
	mallory.Create(born)
	s.ExpectNotReady(born, "InvalidConfig", "config.image")
	if u, err := harness.Read(t.Context(), s.Ref("Deployment", "born")); u != nil || err != nil {
		t.Errorf("there is %v (error %v)", u, err)
	}
	// What is a tenant's to say is heard.
	if err := mallory.Patch(cr, harness.Annotation("operetta.dev/config", "colour: blue")); err != nil {
		t.Fatal(err)
	}
	s.ExpectAllReady(cr)
	if got := runs(s, "shop"); got != [3]any{"server:2", "server-sa", "blue"} {
		t.Errorf("it runs %v", got)
	}
}

func TestAttackOnThePlatformsHookBeforeDeletion(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ pkg, key, value string }{
		"by skipping it":                  {"skipped", "operetta.dev/skip-hooks", "true"},
		"by a configuration that is none": {"unreadable", "operetta.dev/config", "{: ["},
		"by one of the administrator's":   {"overridden", "operetta.dev/config", "image: evil:1"},
		"by one that contradicts":         {"contradicted", "operetta.dev/config", "colour: 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.NewSite(t)
			p := harness.NewSmall(t, row.pkg, platform)
			s.Operate(p.Dir, harness.Alone)
			mallory := s.Tenant("mallory", s.Namespace, things(p))
			cr := mallory.Create(p.Thing(s, "shop", map[string]any{}))
			s.ExpectAllReady(cr)
			if err := mallory.Patch(cr, harness.Annotation(row.key, row.value)); err != nil {
				t.Fatal(err)
			}
			if err := mallory.Client.Delete(t.Context(), cr); err != nil {
				t.Fatal(err)
			}
			s.ExpectThat(cr, "to wait for its hook", func(*unstructured.Unstructured) error {
				if len(s.List("batch/v1", "Job")) == 0 {
					return harness.ErrNotYet
				}
				return nil
			})
			s.Settle()
			if u := s.Get("Deployment", "shop"); u.GetDeletionTimestamp() != nil {
				t.Error("an object went before the hook")
			}
			for _, job := range s.List("batch/v1", "Job") {
				if image := harness.Field(&job, "spec", "template", "spec", "containers"); image.([]any)[0].(map[string]any)["image"] != "server:1" {
					t.Errorf("the hook runs %v", image)
				}
			}
			s.Patch(cr, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		})
	}
}
