// Command kubernetes is a whole Kubernetes control plane, a kubelet and etcd in one program, chosen by its first
// argument: one binary builds once, caches once, and needs no image registry. The servers are the upstream ones;
// nothing of them is changed.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-proxy":              proxy.NewProxyCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	if name != "kubectl" { // a link of that name is the one that people type
		if len(os.Args) < 2 {
			fmt.Fprintln(os.Stderr, "usage: kubernetes etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kube-proxy|kubelet|kubectl FLAGS")
			os.Exit(2)
		}
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "kubernetes: no server named %q\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
