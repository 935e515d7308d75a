package install

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"operetta.dev/engine/object"
	"operetta.dev/engine/rbac"
)

// Options say how the operator runs.
type Options struct {
	rbac.Options

	// Image is the image of the operator.
	Image string
	// Replicas is how many processes there are: one acts, the others stand by.
	Replicas int32
	// LeavesCRDs says that the operator is started with --crds leave.
	LeavesCRDs bool
	// Webhooks says who makes the certificate of the webhooks, or that there are none.
	Webhooks Certificates
	// PackageSelector selects by labels the Packages of the cluster that are served; "" is all.
	PackageSelector string
	// MetricsTokenSecret is the Secret with the token of those who may read metrics; "" has the API server asked.
	MetricsTokenSecret string
	// SignaturePolicy says which signatures contents from registries need; nil is none.
	SignaturePolicy []byte
	// Accounts are the ServiceAccounts as which the operator acts, by the names of packages.
	Accounts map[string]object.Account
	// ConfigMapFlag is the value of --config-map, or "".
	ConfigMapFlag string
}

// A Package is the files of a package.
type Package struct {
	// Name is its name, and Dir its folder in the module.
	Name, Dir string
	// Files are by their paths in the module.
	Files map[string]string
}

// The ports of the operator, and the folder below which packages are mounted.
const (
	metricsPort    = 8080
	healthPort     = 8081
	packagesFolder = "/packages"
)

// The Secret with the token of metrics: its key, and the folder in which it is mounted.
const (
	tokenKey    = "token"
	tokenFolder = "/metrics-token"
)

// The ConfigMap with the policy for signatures: its key, and the folder in which it is mounted.
const (
	signaturesKey    = "policy.yaml"
	signaturesFolder = "/signatures"
)

// maxConfigMap is how much of files a ConfigMap holds: the API server accepts a megabyte with the names.
const maxConfigMap = 1<<20 - 64<<10

// Prerequisites returns what has to be there before roles are bound: the namespace and the service accounts. Namespaces of others are
// theirs.
func Prerequisites(o Options) []any {
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{
		Name: o.OperatorNamespace,
		Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted",
			"pod-security.kubernetes.io/warn":    "restricted",
		},
	}}
	maps.Copy(namespace.Labels, rbac.Labels)
	own := object.Account{Namespace: o.OperatorNamespace, Name: o.ServiceAccount}
	out := []any{namespace, account(own)}
	for _, a := range o.Impersonates {
		if a != own {
			out = append(out, account(a))
		}
	}
	return out
}

func account(a object.Account) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Name: a.Name, Namespace: a.Namespace, Labels: rbac.Labels},
	}
}

// OperatorObjects returns the ConfigMaps of packages, and the Deployment, or the StatefulSet of shards, with its Service, its PodDisruptionBudget and
// its NetworkPolicy. It errors if a package is too large for a ConfigMap.
func OperatorObjects(packages []Package, o Options) ([]any, error) {
	var out []any
	for _, p := range packages {
		config, err := o.configMap(p)
		if err != nil {
			return nil, err
		}
		out = append(out, config)
	}
	if o.SignaturePolicy != nil {
		out = append(out, o.signaturePolicy())
	}
	if o.servesMetrics() {
		out = append(out, o.metrics())
	}
	if o.Shards > 0 {
		return append(out, o.networkPolicy(), o.disruptionBudget(), o.shardService(), o.statefulSet(packages)), nil
	}
	return append(out, o.networkPolicy(), o.disruptionBudget(), o.deployment(packages)), nil
}

// servesMetrics reports whether metrics can be read from outside the pod: only if somebody can say who may.
func (o Options) servesMetrics() bool { return o.SecureMetrics || o.MetricsTokenSecret != "" }

// named returns the metadata of an object in the operator's namespace.
func (o Options) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: o.OperatorNamespace, Labels: rbac.Labels}
}

// selector selects the pods of the operator.
func (o Options) selector() metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: o.podLabels()}
}

// podLabels are the labels of its pods. There may be another operator in the namespace.
func (o Options) podLabels() map[string]string {
	out := maps.Clone(rbac.Labels)
	out["app.kubernetes.io/instance"] = o.ServiceAccount
	return out
}

// configMapName returns the name of the ConfigMap of a package.
func (o Options) configMapName(p Package) string {
	return o.ServiceAccount + "-package-" + strings.ToLower(strings.ReplaceAll(p.Name, "_", "-"))
}

// keyOf returns the key of a file in a ConfigMap: a key has no slashes.
func keyOf(file string) string { return strings.ReplaceAll(file, "/", "__") }

func (o Options) configMap(p Package) (*corev1.ConfigMap, error) {
	out := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: o.named(o.configMapName(p)), Data: map[string]string{}}
	size := 0
	for name, text := range p.Files {
		if _, twice := out.Data[keyOf(name)]; twice {
			return nil, fmt.Errorf("package %s: the files %s and another one would have the same key in a ConfigMap", p.Name, name)
		}
		out.Data[keyOf(name)] = text
		size += len(name) + len(text)
	}
	if size > maxConfigMap {
		return nil, fmt.Errorf("package %s: it has %d bytes, and a ConfigMap holds %d; put it into an image of your own", p.Name, size, maxConfigMap)
	}
	return out, nil
}

// signaturesName returns the name of the ConfigMap with the policy for signatures. The operator reads it when it
// starts, so another policy has another name, by which the Deployment starts it again.
func (o Options) signaturesName() string {
	const bytes = 4 // enough to tell the policies of one operator apart
	sum := sha256.Sum256(o.SignaturePolicy)
	return o.ServiceAccount + "-signatures-" + hex.EncodeToString(sum[:bytes])
}

func (o Options) signaturePolicy() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: o.named(o.signaturesName()),
		Immutable: new(true), Data: map[string]string{signaturesKey: string(o.SignaturePolicy)},
	}
}

func (o Options) metrics() *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: o.named(o.ServiceAccount + "-metrics"),
		Spec: corev1.ServiceSpec{Selector: o.podLabels(), Ports: []corev1.ServicePort{{Name: "metrics", Port: metricsPort, TargetPort: intstr.FromString("metrics"), Protocol: corev1.ProtocolTCP}}},
	}
}

// networkPolicy lets others connect to the metrics, to the probes and to the webhooks alone. What the operator connects to
// is not limited: it is the API server, whose address only the cluster knows.
func (o Options) networkPolicy() *networkingv1.NetworkPolicy {
	port := func(name string) networkingv1.NetworkPolicyPort {
		return networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromString(name))}
	}
	ports := []networkingv1.NetworkPolicyPort{port("health")}
	if o.servesMetrics() {
		ports = append([]networkingv1.NetworkPolicyPort{port("metrics")}, ports...)
	}
	if o.Webhooks != NoWebhooks {
		ports = append(ports, port("webhooks"))
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"}, ObjectMeta: o.named(o.ServiceAccount),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: o.selector(), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: ports}},
		},
	}
}

func (o Options) disruptionBudget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		TypeMeta: metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"}, ObjectMeta: o.named(o.ServiceAccount),
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1)), Selector: new(o.selector())},
	}
}

// Args returns the arguments of the operator.
func (o Options) Args(packages []Package) []string {
	out := []string{"run"}
	if o.PackageObjects {
		out = append(out, "--packages-from-cluster")
		if o.PackageSelector != "" {
			out = append(out, "--package-selector="+o.PackageSelector)
		}
	}
	for _, p := range packages {
		out = append(out, path.Join(packagesFolder, p.Name, p.Dir))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Accounts)) {
		out = append(out, "--impersonate="+name+"="+o.Accounts[name].String())
	}
	if !o.Namespaces.All() {
		out = append(out, "--namespace="+o.Namespaces.String())
	}
	if o.LeavesCRDs {
		out = append(out, "--crds=leave")
	}
	if o.LeaderElectionID != "" {
		out = append(out, "--leader-elect", "--leader-election-id="+o.LeaderElectionID)
	}
	if o.Shards > 0 {
		out = append(out, fmt.Sprintf("--shards=%d", o.Shards), "--shard=$("+shardVariable+")")
	}
	if o.ConfigMapFlag != "" {
		out = append(out, "--config-map="+o.ConfigMapFlag)
	}
	if o.SignaturePolicy != nil {
		out = append(out, "--require-signatures="+path.Join(signaturesFolder, signaturesKey))
	}
	out = append(out, o.webhookArgs()...)
	metrics := fmt.Sprintf("--metrics-bind-address=:%d", metricsPort)
	switch {
	case o.MetricsTokenSecret != "":
		out = append(out, "--metrics-token-file="+path.Join(tokenFolder, tokenKey))
	case !o.SecureMetrics:
		out = append(out, "--metrics-secure=false")
		metrics = fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", metricsPort)
	}
	return append(out, "--log=json", fmt.Sprintf("--health-probe-bind-address=:%d", healthPort), metrics, "--state-dir=/state")
}

// volumes returns the volumes of packages and where they are mounted.
func (o Options) volumes(packages []Package) ([]corev1.Volume, []corev1.VolumeMount) {
	var volumes []corev1.Volume
	var mounts []corev1.VolumeMount
	for i, p := range packages {
		source := corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: o.configMapName(p)}}
		for _, file := range slices.Sorted(maps.Keys(p.Files)) {
			source.Items = append(source.Items, corev1.KeyToPath{Key: keyOf(file), Path: file})
		}
		name := fmt.Sprintf("package-%d", i)
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &source}})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: path.Join(packagesFolder, p.Name), ReadOnly: true})
	}
	// CUE unpacks files in /tmp, and the root file system is read-only. The last good version of each
	// package survives a restart of the container.
	for _, name := range []string{"tmp", "state"} {
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	if o.SignaturePolicy != nil {
		source := corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: o.signaturesName()}}
		volumes = append(volumes, corev1.Volume{Name: "signatures", VolumeSource: corev1.VolumeSource{ConfigMap: &source}})
		mounts = append(mounts, corev1.VolumeMount{Name: "signatures", MountPath: signaturesFolder, ReadOnly: true})
	}
	if o.MetricsTokenSecret != "" {
		secret := corev1.SecretVolumeSource{SecretName: o.MetricsTokenSecret, Items: []corev1.KeyToPath{{Key: tokenKey, Path: tokenKey}}}
		volumes = append(volumes, corev1.Volume{Name: "metrics-token", VolumeSource: corev1.VolumeSource{Secret: &secret}})
		mounts = append(mounts, corev1.VolumeMount{Name: "metrics-token", MountPath: tokenFolder, ReadOnly: true})
	}
	more, at := o.webhookVolumes()
	return append(volumes, more...), append(mounts, at...)
}
