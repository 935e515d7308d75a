package e2e

import (
	"os/exec"
	"testing"

	"operetta.dev/test/harness"
)

// packagesWithRules are schemas with a rule over fields that all have defaults.
var packagesWithRules = map[string]string{
	"two numbers": `
#Spec: {
	@crd(rule="self.min <= self.max", message="the minimum is above the maximum")
	min: int | *1
	max: int | *3
}
`,
	"a list": `
#Spec: {
	@crd(rule="self.topics.all(t, t.replicas <= self.brokers)", message="more replicas than brokers")
	brokers: int & <=9 | *3
	topics: [...#Topic] | *[]
}
#Topic: replicas: int & <=9 | *1
`,
	"a part of the spec": `
#Spec: scale: {
	@crd(rule="self.limit.min <= self.limit.max", message="the minimum is above the maximum")
	limit: {
		min: int | *1
		max: int | *3
	}
}
`,
}

func TestARuleOverDefaultsIsTakenByTheAPIServerWhenVetFindsNoFault(t *testing.T) {
	t.Parallel()
	for name, body := range packagesWithRules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestPackage(t, "ruled"+harness.Unlikely.ReplaceAllString(name, ""), body+"components: {}\n")
			if out, err := exec.CommandContext(t.Context(), harness.Suite.Operetta, "vet", p.Dir).CombinedOutput(); err != nil {
				t.Fatalf("vet: %v: %s", err, out)
			}
			if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
				t.Errorf("the API server says: %v", err)
			}
		})
	}
}
