package install

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// user is the user of the image.
const user = 65532

func (o Options) deployment(packages []Package) *appsv1.Deployment {
	replicas := o.Replicas
	selector := o.selector()
	strategy := appsv1.RollingUpdateDeploymentStrategyType
	if o.LeaderElectionID == "" { // the next process would act beside this one
		strategy = appsv1.RecreateDeploymentStrategyType
	}
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"}, ObjectMeta: o.named(o.ServiceAccount),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &selector,
			Strategy: appsv1.DeploymentStrategy{Type: strategy},
			Template: o.pod(packages),
		},
	}
}

// pod returns the template of the pods.
func (o Options) pod(packages []Package) corev1.PodTemplateSpec {
	volumes, mounts := o.volumes(packages)
	container := o.container(packages)
	container.VolumeMounts = mounts
	selector := o.selector()
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: o.podLabels()},
		Spec: corev1.PodSpec{
			ServiceAccountName:            o.ServiceAccount,
			TerminationGracePeriodSeconds: new(int64(30)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &selector,
			}},
			Containers: []corev1.Container{container},
			Volumes:    volumes,
		},
	}
}

func (o Options) container(packages []Package) corev1.Container {
	probe := func(path string, seconds int32) *corev1.Probe {
		get := &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}, PeriodSeconds: seconds}
	}
	ports := []corev1.ContainerPort{{Name: "health", ContainerPort: healthPort, Protocol: corev1.ProtocolTCP}}
	if o.servesMetrics() {
		ports = append([]corev1.ContainerPort{{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP}}, ports...)
	}
	return corev1.Container{
		Name: "operetta", Image: o.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Args:          o.Args(packages),
		Ports:         append(ports, o.webhookPorts()...),
		LivenessProbe: probe("/healthz", 20), ReadinessProbe: probe("/readyz", 10),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}
