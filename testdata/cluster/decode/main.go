// Command decode measures how long real Helm takes to decode a release record: it reads the Secret of the given file, as
// the API server returns it, RUNS times through the Secret driver of Helm 3 and of Helm 4, and prints the seconds that each
// run took as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	driver3 "helm.sh/helm/v3/pkg/storage/driver"
	driver4 "helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// stored is an API server that holds one Secret and answers nothing but its reading.
type stored struct {
	corev1.SecretInterface
	secret *v1.Secret
}

func (s stored) Get(context.Context, string, metav1.GetOptions) (*v1.Secret, error) {
	return s.secret, nil
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: decode FILE RUNS")
		os.Exit(2)
	}
	text, err := os.ReadFile(os.Args[1])
	must(err)
	runs, err := strconv.Atoi(os.Args[2])
	must(err)
	secret := &v1.Secret{}
	must(json.Unmarshal(text, secret))
	helm3 := driver3.NewSecrets(stored{secret: secret})
	helm4 := driver4.NewSecrets(stored{secret: secret})
	seconds := map[string][]float64{}
	measure := func(helm string, get func(string) error) {
		began := time.Now()
		must(get(secret.Name))
		seconds[helm] = append(seconds[helm], time.Since(began).Seconds())
	}
	for range runs {
		measure("Helm 3", func(key string) error { _, err := helm3.Get(key); return err })
		measure("Helm 4", func(key string) error { _, err := helm4.Get(key); return err })
	}
	must(json.NewEncoder(os.Stdout).Encode(seconds))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
