# Runs in the node's root file system, as the RUN lines of kind's own Dockerfile
# do: furnish.sh KUBERNETES-VERSION PAUSE-IMAGE
version=$1 pause=$2

# Only what a node needs starts with it. The kernel's log belongs to the machine.
rm -f /lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service \
    /lib/systemd/system/multi-user.target.wants/* \
    /etc/systemd/system/*.wants/* \
    /lib/systemd/system/local-fs.target.wants/* \
    /lib/systemd/system/sockets.target.wants/*udev* \
    /lib/systemd/system/sockets.target.wants/*initctl* \
    /lib/systemd/system/basic.target.wants/*
echo "ReadKMsg=no" >>/etc/systemd/journald.conf
ln -sf /usr/lib/systemd/systemd /sbin/init
systemctl enable kubelet.service containerd.service undo-mount-hacks.service
systemctl mask systemd-binfmt.service # it would register formats with the machine's kernel

for program in kubeadm kubelet kubectl; do
    ln -sf kube "/usr/bin/$program"
done
mkdir -p /etc/kubernetes/manifests /etc/cni/net.d
# The product files hook makes every node look like a machine of its own.
ctr oci spec |
    jq '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
        >/etc/containerd/cri-base.json
sed -i "s|sandbox_image = .*|sandbox_image = \"$pause\"|" /etc/containerd/config.toml

echo "$version" >/kind/version
mkdir -p /kind/manifests
: >/kind/manifests/default-cni.yaml # the network is set up from outside
cat >/kind/manifests/default-storage.yaml <<'YAML'
# Volumes of the node's own disk that a person creates by hand; nothing here
# provisions them.
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations:
    storageclass.kubernetes.io/is-default-class: "true"
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
YAML
