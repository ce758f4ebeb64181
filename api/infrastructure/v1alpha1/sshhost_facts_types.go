package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SSHHostDisk is a disk of a host.
type SSHHostDisk struct {
	// name of the block device, for example nvme0n1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name,omitempty"`

	// sizeMiB is the size of the disk.
	// +required
	// +kubebuilder:validation:Minimum=1
	SizeMiB int64 `json:"sizeMiB,omitempty"`
}

// SSHHostFacts describe a host.
// +kubebuilder:validation:MinProperties=1
type SSHHostFacts struct {
	// hostname of the host, which becomes the name of the Node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Hostname string `json:"hostname,omitempty"`

	// osImage is the name and version of the distribution, for example Debian GNU/Linux 13 (trixie).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	OSImage string `json:"osImage,omitempty"`

	// architecture is the processor architecture in Kubernetes notation, for example amd64.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Architecture string `json:"architecture,omitempty"`

	// kernel is the version of the kernel.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Kernel string `json:"kernel,omitempty"`

	// cpus is the number of processors.
	// +optional
	// +kubebuilder:validation:Minimum=1
	CPUs int32 `json:"cpus,omitempty"`

	// memoryMiB is the size of the memory. It changes only if the size has changed by at least two percent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MemoryMiB int64 `json:"memoryMiB,omitempty"`

	// diskMiB is the size of the file system with /var/lib. It changes only if the size has changed by at least two percent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DiskMiB int64 `json:"diskMiB,omitempty"`

	// disks are the disks of the host, without partitions, logical volumes and network block devices. A container shows
	// the disks of the machine that it runs on.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Disks []SSHHostDisk `json:"disks,omitempty"`

	// securityModule is the Linux security module that is enabled: AppArmor, SELinux (enforcing) or SELinux (permissive).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	SecurityModule string `json:"securityModule,omitempty"`

	// containerRuntime lists the systemd units of container runtimes that are active on the host and that the provider did not
	// install, separated by commas: containerd, docker and crio.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ContainerRuntime string `json:"containerRuntime,omitempty"`

	// clockOffsetSeconds is the difference between the clock of the host and the clock of the manager, rounded to full
	// minutes. It changes only if the difference has changed by at least 40 seconds.
	// +optional
	ClockOffsetSeconds *int32 `json:"clockOffsetSeconds,omitempty"`

	// cgroupVersion is the version of control groups: 1 or 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	CgroupVersion int32 `json:"cgroupVersion,omitempty"`

	// machineIDHash is a hash of /etc/machine-id, which must be unique in a cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	MachineIDHash string `json:"machineIDHash,omitempty"`

	// productUUIDHash is a hash of the product UUID of the hardware or virtual machine, which must be unique in a cluster.
	// It is not set for containers and for firmware without one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ProductUUIDHash string `json:"productUUIDHash,omitempty"`
}

// SSHHostCleaningRecord is the checklist of a cleaning that left nothing behind.
type SSHHostCleaningRecord struct {
	// claimID is the claim whose node was removed, or unrecorded for the node of another installer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ClaimID string `json:"claimID,omitempty"`

	// time of the cleaning by the clock of the host.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// verified lists what was compared with the state of the host before the claim.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Verified []string `json:"verified,omitempty"`
}
