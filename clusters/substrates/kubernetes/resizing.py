"""A pod that gets other limits in place, where its server and its machine can: without another pod in its place.

It is for pods in which nothing of their node runs. Databases ask for the number of cores and the size of their caches
once, when they start: what runs on would have the limits of one size, and the threads and caches of another.
"""

import asyncio
import math
import re
import time
from collections.abc import Mapping, Sequence

from clusters.errors import HarnessError
from clusters.substrates.kubernetes.api import Api, said
from clusters.substrates.kubernetes.commands import limits
from clusters.substrates.kubernetes.history import History
from clusters.substrates.kubernetes.manifests import Template, resized
from clusters.substrates.kubernetes.pods import Pod, Pods
from clusters.substrates.kubernetes.shell import Shell

_RESIZE_S = 60.0
"""How long a machine may take before another pod is made: most of it where another container is."""
_AGAIN_S = 0.2
_SAME = 0.01
"""A quota is a whole number of microseconds, a limit a whole number of pages: a hundredth is the same."""
_SHORTAGE = re.compile(r"(exceeded|failed) quota|(usage|ratio) per (Container|Pod) is")
"""What quotas and limit ranges say, which another pod would be refused by, too."""


async def resize(
    api: Api,
    namespace: str,
    pods: Pods,
    history: History,
    pod: Pod,
    shells: Sequence[Shell],
    template: Template,
) -> str:
    """Have a pod in which nothing runs be of this template, without another; why it is not, and nothing where it is.

    Its limits are those that its container's own control group says. Raises ``BadInput`` where no pod of the namespace
    may have them, or the account may not ask for it.
    """
    former = pod.uid
    # Those to a container that is made anew would be lost.
    await asyncio.gather(*(asyncio.to_thread(shell.close) for shell in shells))
    why = _no_resize(pod, template) or await _refused(api, namespace, pod, template)
    why = why or await _not_given(pods, pod, shells[-1], template)
    if why:
        outcome = f"made anew, as {why}"
    elif pod.uid != former:
        outcome = f"ended from outside, and made anew with {_sizes(template)}"
    else:
        outcome = f"given {_sizes(template)} in place, by its control group"
        if pod.told is not None and pod.told.limits != template.limits:
            outcome += f"; its machine says {_sizes(pod.told)}"
    history.write(f"pod {pod.name}: {outcome}")
    return why


def _no_resize(pod: Pod, template: Template) -> str:
    """Why nobody has to be asked whether it can be."""
    if pod.template is None or not pod.ready:
        return "its container did not run"
    if pod.template.image != template.image:
        return "its image is another one"
    added = pod.template.limits.keys() != template.limits.keys()
    return "limits are neither added nor taken away in place" if added else ""


async def _refused(api: Api, namespace: str, pod: Pod, template: Template) -> str:
    what, patch = f"give pod {pod.name} {_sizes(template)} in place", api.core.patch_namespaced_pod_resize
    if (refusal := await api.accepted(what, patch, pod.name, namespace, resized(template))) is None:
        return ""
    words = said(refusal)
    if refusal.status == 401 or (refusal.status == 403 and (" cannot " in words or _SHORTAGE.search(words))):
        raise api.refused(what, refusal)
    return f"the API server does not {what}: {words}"


async def _not_given(pods: Pods, pod: Pod, looks: Shell, template: Template) -> str:
    """Wait until it has what was asked for; why it does not get it."""
    until, found, why = time.monotonic() + _RESIZE_S, "", ""
    while time.monotonic() < until and not why:
        pods.refuse_unwatched()
        if pod.template is not None and pod.template.limits == template.limits and not pod.not_resized:
            found = await _found(pod, looks, template)
            if not found and not pod.resizing:
                return ""
        why = pod.not_resized or (pod.waiting if pod.stuck else "")
        await asyncio.sleep(_AGAIN_S)
    why = why or f"not within {_RESIZE_S:g} s: {pod.resizing or found or 'nobody says why'}"
    return f"it was not given {_sizes(template)} in place: {why}"


async def _found(pod: Pod, looks: Shell, template: Template) -> str:
    """What the container's control group has that the template has not; nothing where it has the same."""
    if not pod.ready:
        return "another container is made"
    try:
        has = limits((await asyncio.to_thread(looks.ask, "limits"))[1], pod.name)
    except HarnessError as error:  # as where the container is just being made anew
        return str(error)
    wanted = {"cpus": template.cpus, "memory_mib": template.memory_mib}
    same = all(math.isclose(has.get(name, math.inf), size or math.inf, rel_tol=_SAME) for name, size in wanted.items())
    return "" if same else f"its control group has {_listed(has)}"


def _sizes(template: Template) -> str:
    """Limits in words."""
    return _listed(template.limits) or "no limits"


def _listed(named: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {size}" for name, size in named.items())
