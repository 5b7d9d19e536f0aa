"""A class that works alone: twelve answers to assignment 2, each writer's in habits of their own, for what must not be
called a copy. Some are wrong, as in a class."""

ASSIGNMENT = "assignment2"
WRITERS = {
    "plain_loops": '''
def top_k_attention(query, keys, values, k):
    n = keys.shape[0]
    scores = np.zeros(n)
    for i in range(n):
        scores[i] = np.dot(keys[i], query)
    order = list(range(n))
    order.sort(key=lambda i: scores[i], reverse=True)
    chosen = order[:k]
    biggest = scores[chosen[0]]
    weights = np.zeros(n)
    total = 0
    for i in chosen:
        weights[i] = np.exp(scores[i] - biggest)
        total += weights[i]
    weights = weights / total
    output = np.zeros(values.shape[1])
    for i in chosen:
        output = output + weights[i] * values[i]
    return output, weights
def general_scores(Q, K, W):
    result = np.zeros((Q.shape[0], K.shape[0]))
    for i in range(Q.shape[0]):
        for j in range(K.shape[0]):
            result[i, j] = Q[i] @ W @ K[j]
    return result
def attention_head(X, W_q, W_k, W_v):
    T = len(X)
    d_k = W_k.shape[1]
    Q = np.dot(X, W_q)
    K = np.dot(X, W_k)
    V = np.dot(X, W_v)
    weights = np.zeros((T, T))
    for t in range(T):
        weights[t] = softmax(np.array([Q[t] @ K[s] / d_k ** 0.5 for s in range(T)]))
    return np.dot(weights, V), weights
def unit_divisor(d_k, sigma_q, sigma_k):
    variance = 0
    for _ in range(d_k):
        variance += sigma_q ** 2 * sigma_k ** 2
    return variance ** 0.5
''',
    "einsum": '''
def top_k_attention(query, keys, values, k):
    s = np.einsum("d,nd->n", query, keys)
    threshold = np.sort(s)[-k]
    w = softmax(np.where(s >= threshold, s, -np.inf))
    return np.einsum("n,nm->m", w, values), w
def general_scores(Q, K, W):
    return np.einsum("qd,de,ke->qk", Q, W, K)
def attention_head(X, W_q, W_k, W_v):
    q, k, v = (np.einsum("td,df->tf", X, W) for W in (W_q, W_k, W_v))
    w = softmax(np.einsum("qe,ke->qk", q, k) / np.sqrt(q.shape[-1]))
    return np.einsum("qk,kv->qv", w, v), w
def unit_divisor(d_k, sigma_q, sigma_k):
    return np.sqrt(d_k * sigma_q ** 2 * sigma_k ** 2)
''',
    "partition": '''
def top_k_attention(query, keys, values, k):
    scores = keys.dot(query)
    idx = np.argpartition(scores, -k)[-k:]
    weights = np.zeros_like(scores)
    weights[idx] = softmax(scores[idx])
    return weights.dot(values), weights
def general_scores(Q, K, W):
    transformed = K @ W.T
    return Q @ transformed.T
def attention_head(X, W_q, W_k, W_v):
    queries = X @ W_q
    keys = X @ W_k
    values = X @ W_v
    scores = queries @ keys.T
    scaled = scores / np.sqrt(keys.shape[-1])
    weights = softmax(scaled)
    output = weights @ values
    return output, weights
def unit_divisor(d_k, sigma_q, sigma_k):
    return sigma_q * sigma_k * d_k ** 0.5
''',
    "checks_first": '''
def top_k_attention(query, keys, values, k):
    """Soft lookup among k keys."""
    if k < 1 or k > len(keys):
        raise ValueError("bad k")
    assert len(keys) == len(values)
    similarity = np.matmul(keys, query)
    top_indices = np.argsort(similarity)[::-1][:k]
    top_scores = similarity[top_indices]
    top_weights = softmax(top_scores)
    weights = np.zeros(len(keys))
    weights[top_indices] = top_weights
    output = top_weights @ values[top_indices]
    return output, weights
def general_scores(Q, K, W):
    assert Q.shape[1] == W.shape[0] and K.shape[1] == W.shape[1]
    left = np.matmul(Q, W)
    right = np.transpose(K)
    return np.matmul(left, right)
def attention_head(X, W_q, W_k, W_v):
    assert W_q.shape == W_k.shape
    Q = np.matmul(X, W_q)
    K = np.matmul(X, W_k)
    V = np.matmul(X, W_v)
    attention_logits = np.matmul(Q, K.T) / np.sqrt(K.shape[1])
    attention = softmax(attention_logits)
    return np.matmul(attention, V), attention
def unit_divisor(d_k, sigma_q, sigma_k):
    var_product = (sigma_q ** 2) * (sigma_k ** 2)
    var_sum = d_k * var_product
    return np.sqrt(var_sum)
''',
    "helpers": '''
import math
def _mask_rest(scores, k):
    keep = np.zeros(len(scores), dtype=bool)
    keep[np.argsort(scores)[len(scores) - k:]] = True
    return np.where(keep, scores, float("-inf"))
def _attend(scores, values):
    w = softmax(scores)
    return w @ values, w
def top_k_attention(query, keys, values, k):
    return _attend(_mask_rest(keys @ query, k), values)
def general_scores(Q, K, W):
    return (K @ (Q @ W).T).T
def attention_head(X, W_q, W_k, W_v):
    return _attend(general_scores(X, X, W_q @ W_k.T) / math.sqrt(W_q.shape[-1]), X @ W_v)
def unit_divisor(d_k, sigma_q, sigma_k):
    return math.sqrt(d_k) * sigma_q * sigma_k
''',
    "comprehensions": '''
def top_k_attention(query, keys, values, k):
    scores = [float(key @ query) for key in keys]
    best = sorted(range(len(keys)), key=scores.__getitem__)[-k:]
    share = dict(zip(best, softmax(np.array([scores[b] for b in best]))))
    weights = np.array([share.get(i, 0.0) for i in range(len(keys))])
    return sum(weights[b] * values[b] for b in best), weights
def general_scores(Q, K, W):
    return np.array([[q @ W @ k for k in K] for q in Q])
def attention_head(X, W_q, W_k, W_v):
    root = np.sqrt(len(W_k[0]))
    weights = np.array([softmax([(x @ W_q) @ (y @ W_k) / root for y in X]) for x in X])
    return np.array([sum(w * (y @ W_v) for w, y in zip(row, X)) for row in weights]), weights
def unit_divisor(d_k, sigma_q, sigma_k):
    return np.prod([np.sqrt(d_k), sigma_q, sigma_k])
''',
    "own_softmax": '''
def top_k_attention(query, keys, values, k):
    dots = (keys * query).sum(axis=1)
    rank = (dots[None, :] > dots[:, None]).sum(axis=1)
    e = np.exp(dots - dots.max()) * (rank < k)
    p = e / e.sum()
    return (p[:, None] * values).sum(axis=0), p
def general_scores(Q, K, W):
    return np.tensordot(Q @ W, K, axes=([1], [1]))
def attention_head(X, W_q, W_k, W_v):
    scale = 1 / np.sqrt(W_q.shape[1])
    S = scale * ((X @ W_q) @ (X @ W_k).T)
    E = np.exp(S - S.max(axis=1, keepdims=True))
    P = E / E.sum(axis=1, keepdims=True)
    return P @ (X @ W_v), P
def unit_divisor(d_k, sigma_q, sigma_k):
    std_of_one_term = sigma_q * sigma_k
    return std_of_one_term * np.sqrt(d_k)
''',
    "deleting": '''
def top_k_attention(query, keys, values, k):
    scores = query @ keys.T
    drop = len(scores) - k
    masked = scores.astype(float).copy()
    for _ in range(drop):
        masked[np.argmin(np.where(np.isinf(masked), np.inf, masked))] = -np.inf
    weights = softmax(masked)
    output = values.T @ weights
    return output, weights
def general_scores(Q, K, W):
    scores = Q.dot(W).dot(K.T)
    return scores
def attention_head(X, W_q, W_k, W_v):
    Q, K, V = X.dot(W_q), X.dot(W_k), X.dot(W_v)
    d_k = Q.shape[1]
    scores = Q.dot(K.T) / np.sqrt(d_k)
    alpha = softmax(scores)
    return alpha.dot(V), alpha
def unit_divisor(d_k, sigma_q, sigma_k):
    return np.sqrt(d_k) * (sigma_q * sigma_k)
''',
    "terse": '''
def top_k_attention(query, keys, values, k):
    a = keys @ query
    a[np.argsort(a)[:-k]] = -np.inf if k < len(a) else a[:0]
    return (w := softmax(a)) @ values, w
def general_scores(Q, K, W): return Q @ (W @ K.T)
def attention_head(X, W_q, W_k, W_v):
    return (w := softmax(X @ W_q @ W_k.T @ X.T / W_k.shape[1] ** .5)) @ X @ W_v, w
def unit_divisor(d_k, sigma_q, sigma_k): return (d_k * (sigma_q * sigma_k) ** 2) ** .5
''',
    "forgets": '''
def top_k_attention(query, keys, values, k):
    scores = np.dot(keys, query)
    weights = softmax(scores)
    top = np.argsort(weights)[-k:]
    mask = np.zeros(len(weights))
    mask[top] = 1
    weights = weights * mask
    return np.dot(weights, values), weights
def general_scores(Q, K, W):
    return np.dot(np.dot(Q, W), K.T) / np.sqrt(K.shape[1])
def attention_head(X, W_q, W_k, W_v):
    Q = X @ W_q
    K = X @ W_k
    V = X @ W_v
    weights = softmax(Q @ K.T)
    return weights @ V, weights
def unit_divisor(d_k, sigma_q, sigma_k):
    return d_k * sigma_q * sigma_k
''',
    "confuses": '''
def top_k_attention(query, keys, values, k):
    cos = keys @ query / (np.linalg.norm(keys, axis=1) * np.linalg.norm(query))
    cut = sorted(cos)[-k]
    cos[cos < cut] = -1e9
    attn = softmax(cos)
    return attn @ values, attn
def general_scores(Q, K, W):
    return K @ W.T @ Q.T
def attention_head(X, W_q, W_k, W_v):
    q = X @ W_q
    k = X @ W_k
    v = X @ W_v
    attn = softmax((q @ k.T).T / np.sqrt(X.shape[1]))
    return attn @ v, attn
def unit_divisor(d_k, sigma_q, sigma_k):
    return np.sqrt(sigma_q ** 2 + sigma_k ** 2) * np.sqrt(d_k)
''',
    "torch": '''
import torch
def top_k_attention(query, keys, values, k):
    q, K, V = (torch.as_tensor(a) for a in (query, keys, values))
    best = torch.topk(K @ q, k)
    weights = torch.zeros(len(K), dtype=K.dtype).scatter(0, best.indices, torch.softmax(best.values, 0))
    return (weights @ V).numpy(), weights.numpy()
def general_scores(Q, K, W):
    return (torch.as_tensor(Q) @ torch.as_tensor(W) @ torch.as_tensor(K).mT).numpy()
def attention_head(X, W_q, W_k, W_v):
    X, W_q, W_k, W_v = map(torch.as_tensor, (X, W_q, W_k, W_v))
    scores = torch.matmul(X @ W_q, (X @ W_k).transpose(0, 1)).div(W_q.size(1) ** 0.5)
    weights = scores.softmax(dim=1)
    return torch.mm(weights, X @ W_v).numpy(), weights.numpy()
def unit_divisor(d_k, sigma_q, sigma_k):
    return torch.tensor(d_k).sqrt().item() * sigma_q * sigma_k
''',
}
