package main

import (
	"context"
	"log"

	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// registrant tells the kubelet which driver there is and where.
type registrant struct {
	registration.UnimplementedRegistrationServer
	driver, endpoint string
	refused          func(reason string)
}

func (r *registrant) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:     registration.CSIPlugin,
		Name:     r.driver,
		Endpoint: r.endpoint,
		// Of the CSI specification, not of this program: the kubelet takes any 1.x.
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r *registrant) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if status.PluginRegistered {
		log.Printf("the kubelet registered %s", r.driver)
	} else {
		r.refused(status.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}
