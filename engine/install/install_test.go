package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"operetta.dev/engine/object"
	"operetta.dev/engine/rbac"
)

func TestArgumentsFollowFromOptions(t *testing.T) {
	t.Parallel()
	const address = "--metrics-bind-address="
	always := []string{"--log=json", "--health-probe-bind-address=:8081", address + ":8080", "--state-dir=/state"}
	alone := []string{"--metrics-secure=false", "--log=json", "--health-probe-bind-address=:8081", address + "127.0.0.1:8080", "--state-dir=/state"}
	for name, tc := range map[string]struct {
		reason   string
		options  Options
		packages []Package
		want     []string
	}{
		"Plain":       {"a folder without a module is mounted as it is", Options{}, []Package{{Name: "shop", Dir: "."}}, append([]string{"run", "/packages/shop"}, alone...)},
		"Module":      {"a package runs in its folder of the module", Options{}, []Package{{Name: "shop", Dir: "cue/shop"}}, append([]string{"run", "/packages/shop/cue/shop"}, alone...)},
		"Namespace":   {"an operator of one namespace installs no definitions", Options{Options: rbac.Options{Namespaces: object.Namespaces{"a"}}, LeavesCRDs: true}, nil, append([]string{"run", "--namespace=a", "--crds=leave"}, alone...)},
		"Namespaces":  {"one operator may serve several", Options{Options: rbac.Options{Namespaces: object.Namespaces{"a", "b"}}, LeavesCRDs: true}, nil, append([]string{"run", "--namespace=a,b", "--crds=leave"}, alone...)},
		"Lease":       {"each operator of a namespace has its Lease", Options{Options: rbac.Options{LeaderElectionID: "x"}}, nil, append([]string{"run", "--leader-elect", "--leader-election-id=x"}, alone...)},
		"Configuring": {"the configuration is that of the roles", Options{ConfigMapFlag: "a/b"}, nil, append([]string{"run", "--config-map=a/b"}, alone...)},
		"Asking":      {"the API server says who may read metrics", Options{Options: rbac.Options{SecureMetrics: true}}, nil, append([]string{"run"}, always...)},
		"Token":       {"a token says it where the API server may not be asked", Options{MetricsTokenSecret: "x"}, nil, append([]string{"run", "--metrics-token-file=/metrics-token/token"}, always...)},
		"Selecting":   {"another operator serves the other Packages", Options{Options: rbac.Options{PackageObjects: true}, PackageSelector: "a=b"}, nil, append([]string{"run", "--packages-from-cluster", "--package-selector=a=b"}, alone...)},
		"Signatures":  {"the file is that of the ConfigMap", Options{SignaturePolicy: []byte("x")}, nil, append([]string{"run", "--require-signatures=/signatures/policy.yaml"}, alone...)},
		"Webhooks":    {"the operator keeps its certificate", Options{Options: rbac.Options{OperatorNamespace: "home", ServiceAccount: "op"}, Webhooks: Operator}, nil, append([]string{"run", "--webhook-bind-address=:9443", "--webhook-secret=home/op-webhooks", "--webhook-service=home/op-webhooks", "--webhook-configuration=op-webhooks.home"}, alone...)},
		"CertManager": {"somebody else keeps the certificate", Options{Options: rbac.Options{OperatorNamespace: "home", ServiceAccount: "op"}, Webhooks: CertManager}, nil, append([]string{"run", "--webhook-bind-address=:9443", "--webhook-cert-dir=/webhook-certificate", "--webhook-service=home/op-webhooks"}, alone...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.options.Args(tc.packages)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWithoutALeaseAnUpdateNeverRunsTwoProcesses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, lease string
		want          appsv1.DeploymentStrategyType
	}{
		"Lease":   {"the next process stands by until it leads", "x", appsv1.RollingUpdateDeploymentStrategyType},
		"NoLease": {"the next process acts as soon as it runs", "", appsv1.RecreateDeploymentStrategyType},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Options{Options: rbac.Options{LeaderElectionID: tc.lease}, Replicas: 1}.deployment(nil)
			if got.Spec.Strategy.Type != tc.want {
				t.Errorf("%s: the strategy is %s, want %s", tc.reason, got.Spec.Strategy.Type, tc.want)
			}
		})
	}
}

func TestAnotherPolicyForSignaturesStartsTheOperatorAgain(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, policy := range []string{"a", "b"} {
		objects, err := OperatorObjects(nil, Options{Options: rbac.Options{ServiceAccount: "op", OperatorNamespace: "home"}, SignaturePolicy: []byte(policy)})
		if err != nil {
			t.Fatal(err)
		}
		config, pods := "", ""
		for _, o := range objects {
			switch u := o.(type) {
			case *corev1.ConfigMap:
				config = u.Name
				if diff := cmp.Diff(map[string]string{"policy.yaml": policy}, u.Data); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			case *appsv1.Deployment:
				for _, v := range u.Spec.Template.Spec.Volumes {
					if v.ConfigMap != nil {
						pods = v.ConfigMap.Name
					}
				}
			}
		}
		if config == "" || pods != config {
			t.Errorf("the pods have %q, and the ConfigMap is %q", pods, config)
		}
		names[config] = true
	}
	if len(names) != 2 {
		t.Errorf("%v: the operator reads its policy only when it starts", names)
	}
}

func TestAPackageThatNoConfigMapHoldsIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		want   string
	}{
		"Fits":      {"most packages are small", map[string]string{"shop/a.cue": "a: 1", "cue.mod/module.cue": ""}, ""},
		"TooLarge":  {"the API server would reject it", map[string]string{"a.cue": strings.Repeat("a", 1<<20)}, "package shop: it has 1048581 bytes"},
		"Collision": {"one of two files would be lost", map[string]string{"a/b.cue": "", "a__b.cue": ""}, "the same key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := OperatorObjects([]Package{{Name: "shop", Dir: ".", Files: tc.files}}, Options{})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
