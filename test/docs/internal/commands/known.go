package commands

// Played are the commands that package play runs on a control plane, in the order in which the
// documents show them: each has to succeed.
var Played = []string{
	"operetta vet ./cue/webapp",
	"operetta vet --edges ./cue/webapp",
	"operetta vet --strict ./cue/...",
	"operetta render ./cue/webapp -f config/samples/webapp.yaml",
	"operetta crd ./cue/webapp | kubectl apply -f -",
	"operetta crd ./cue/... -o json",
	"kubectl get webapp nginx-app -o yaml > cr.yaml",
	"kubectl get all,configmap,secret -o yaml > live.yaml",
	"operetta render ./cue/webapp -f cr.yaml --live live.yaml",
	"operetta render ./cue/webapp --graph",
	"operetta render ./cue/webapp --graph=mermaid",
	"operetta run --dry-run ./cue/webapp -f config/samples/webapp.yaml --delete",
	"operetta run --dry-run=server ./cue/webapp",
	"operetta version",
	"operetta version -o json",
	"operetta vet",
	"kubectl annotate webapp nginx-app operetta.dev/paused=true",
	"kubectl annotate webapp nginx-app operetta.dev/paused-",
	"kubectl annotate webapp nginx-app --overwrite operetta.dev/reconcile-at=\"$(date)\"",
	"kubectl annotate webapp nginx-app operetta.dev/log-level=debug",
	"operetta run --dry-run ./cue/webapp -f cr.yaml",
	"go tool cue vet -c=false ./cue/webapp",
	"kubectl get webapp nginx-app",
	"kubectl get webapp nginx-app -o yaml",
	"kubectl describe webapp nginx-app",
	`kubectl get webapp nginx-app -o jsonpath='{range .status.components[*]}{.name}{"\t"}{.state}{"\t"}{.reason}{"\t"}{.message}{"\n"}{end}'`,
	"kubectl get pods -l app.kubernetes.io/name=nginx-app",
	"kubectl describe deployment nginx-app",
	"kubectl get events --sort-by=.lastTimestamp",
}

// Left are the commands that are not run, each with the reason.
var Left = map[string]string{
	"operetta run ./cue/...": "the control plane of the test runs these operators already; the README runs one of its own",
	"operetta run ./cue/webapp --kubeconfig dev.kubeconfig --log json":                              "the same; the flags are tested in cmd/operetta",
	"operetta vet -q ./cue/... && git commit":                                                       "it commits; what stands before it runs in cmd/operetta",
	"operetta install ./cue/... | kubectl apply --server-side -f -":                                 "its policies would refuse the operators of the test; test/attack applies them",
	"operetta install ./cue/webapp --operator-user alice":                                           "the same; the flags are tested in cmd/operetta",
	"operetta install ./cue/webapp -n team-a --operator-user system:serviceaccount:team-a:operetta": "the same",
	"operetta run ./guestbook":                                                                      "the package is the reader's own",
	"go install ./cmd/operetta":                                                                     "it writes into a folder of the user; make build compiles the same",
	"docker build -t operetta:latest .":                                                             "it needs Docker; test/image builds the image without it",
	"kubectl auth can-i create deployments --as system:serviceaccount:operetta-system:operetta":     "its exit code is the answer, which is no until docs/install.md is played",
	"kubectl -n operetta-system logs deployment/operetta":                                           "the nodes of the test run no containers",
	"make manifests":        "a target of kubebuilder, which the page compares with",
	"go test ./engine/...":  "it is a part of make test, which runs this test",
	"go test ./test/attack": "it is a part of make test, which runs this test",
	"go test ./test/e2e":    "it is a part of make test, which runs this test",
}
